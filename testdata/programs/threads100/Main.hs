{-# LANGUAGE BangPatterns #-}
-- Many Haskell threads, each busy at the bottom of a recursion of known depth.
-- Half way through, bound threads follow, each with an OS thread of its own that
-- was not there when the program began.
--
-- Must show: samples carry the TSO ids that this program prints, on the
-- capability it prints for them (threads are pinned), and a sample in
-- Main.bottom has as many frames of Main.down as the thread's depth.
--
-- Output: one line a thread, `thread TSO cap N depth N`, before the work begins;
-- `bound TSO cap - depth N` for a bound one, whose capability is not pinned; last
-- `done` and the number of threads.
--
-- Each half ends when the process has used half of so many milliseconds of CPU time, and
-- with "lines" begins to count them only when a line comes on standard input.
--
-- usage: threads100 [MILLISECONDS [THREADS [BOUND [lines]]]]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate, finally)
import Control.Monad (forM, unless, when)
import Data.IORef
import Data.Word (Word64)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.IO

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  let (ms, threads, bound) = case map read (filter (/= "lines") args) of
        [m] -> (m, 100, 4)
        [m, t] -> (m, t, 4)
        [m, t, o] -> (m, t, o)
        _ -> (5000, 100, 4) :: (Int, Int, Int)
      half = do
        when ("lines" `elem` args) (() <$ getLine)
        begun <- getCPUTime
        used (begun + fromIntegral ms * 500000000)
  caps <- getNumCapabilities
  stop <- newIORef False
  go <- newEmptyMVar
  green <- forM [0 .. threads - 1] $ \n -> do
    let cap = n `mod` caps
    start (forkOn cap) go stop "thread" (show cap) (10 + n `mod` 50)
  putMVar go ()
  half
  os <- if rtsSupportsBoundThreads
    then forM [0 .. bound - 1] $ \n -> start forkOS go stop "bound" "-" (10 + n)
    else return []
  half
  writeIORef stop True
  mapM_ takeMVar (green ++ os)
  putStrLn ("done " ++ show (length green + length os))

-- Waits until the process has used so much CPU time.
used :: Integer -> IO ()
used most = do
  now <- getCPUTime
  unless (now >= most) $ threadDelay 10000 >> used most

-- No thread begins its work before go is full, so that starting the last is not
-- held up by the first.
start :: (IO () -> IO ThreadId) -> MVar () -> IORef Bool -> String -> String -> Int -> IO (MVar ())
start fork go stop kind cap depth = do
  done <- newEmptyMVar
  tid <- fork $ (readMVar go >> work stop depth 1) `finally` putMVar done ()
  putStrLn (unwords [kind, drop 9 (show tid), "cap", cap, "depth", show depth])
  return done

work :: IORef Bool -> Int -> Word64 -> IO ()
work stop depth = loop
  where
    loop !x = do
      x' <- evaluate (down depth x)
      over <- readIORef stop
      if over then return () else yield >> loop x'

-- One return frame a level: the result is needed before the addition.
{-# NOINLINE down #-}
down :: Int -> Word64 -> Word64
down 0 x = bottom 200000 x
down n x = 1 + down (n - 1) x

{-# NOINLINE bottom #-}
bottom :: Int -> Word64 -> Word64
bottom 0 !x = x
bottom n x = bottom (n - 1) (x * 2862933555777941757 + 3037000493)
