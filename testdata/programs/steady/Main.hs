{-# LANGUAGE BangPatterns #-}
-- The same work again and again, until it is killed: a byte on standard output for every
-- piece that is done, so that one can see what a piece takes while something is
-- measured, and while nothing is. With PIECES it ends when so many are done, and writes on
-- standard error what CPU time it has used by then, in ns.
--
-- Must show: a piece takes as much more CPU time during a capture as the capture says.
--
-- usage: steady spin|alloc|pingpong|server [PIECES]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Monad (forM_, forever, replicateM_, when)
import Data.Bits (shiftR)
import qualified Data.Map.Strict as Map
import Data.Word (Word64)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)
import System.IO

main :: IO ()
main = do
  hSetBuffering stdout NoBuffering
  args <- getArgs
  let (mode, asked) = case args of
        [m] -> (m, 0)
        [m, n] -> (m, read n)
        _ -> usage
  left <- newMVar (asked :: Int)
  used <- newEmptyMVar
  let done = do
        putChar '.'
        n <- modifyMVar left (\n -> return (n - 1, n - 1))
        when (n == 0) (getCPUTime >>= putMVar used)
  case mode of
    "spin" -> pieces done spin
    "alloc" -> pieces done alloc
    "pingpong" -> pingpong done
    "server" -> server done
    _ -> usage
  ps <- takeMVar used
  hPutStrLn stderr (show (ps `div` 1000))
  where
    usage = error "usage: steady spin|alloc|pingpong|server [PIECES]"

-- | Work on a seed, some 20 ms a piece.
pieces :: IO () -> (Word64 -> Word64) -> IO ()
pieces done work = () <$ forkIO (go 1)
  where
    go !seed = do
      let !seed' = work seed
      done
      go seed'

{-# NOINLINE spin #-}
spin :: Word64 -> Word64
spin = go (16000000 :: Int)
  where
    go 0 !x = x
    go n x = go (n - 1) (x * 2862933555777941757 + 3037000493)

{-# NOINLINE alloc #-}
alloc :: Word64 -> Word64
alloc = go (2500 :: Int)
  where
    go 0 !x = x
    go n x = go (n - 1) (x + fromIntegral (count (list (500 + fromIntegral (x `shiftR` 60)) [])) + 6364136223846793005)

{-# NOINLINE list #-}
list :: Int -> [Int] -> [Int]
list 0 xs = xs
list n xs = list (n - 1) (boxed : xs)
  where !boxed = n * 5 + 1

{-# NOINLINE count #-}
count :: [Int] -> Int
count = go 0
  where
    go !acc [] = acc
    go acc (_ : xs) = go (acc + 1) xs

-- | Two bound threads that hand a token to each other; a piece is a thousand turns.
pingpong :: IO () -> IO ()
pingpong done = do
  ping <- newEmptyMVar
  pong <- newEmptyMVar
  _ <- forkOS (forever (takeMVar ping >>= putMVar pong . (+ 1)))
  _ <- forkOS (forever (replicateM_ 1000 (takeMVar pong >>= putMVar ping) >> done))
  putMVar ping (0 :: Int)

-- | Workers that serve clients; a piece is a thousand requests.
server :: IO () -> IO ()
server done = do
  queue <- newTBQueueIO 64
  sessions <- newTVarIO (Map.empty :: Map.Map Int [Int])
  served <- newEmptyMVar
  forM_ [1 .. 4 :: Int] $ \_ -> forkIO . forever $ do
    (user, work, answer) <- atomically (readTBQueue queue)
    let !result = digest user work
    atomically (modifyTVar' sessions (Map.insertWith (\new old -> evaluated (take 50 (new ++ old))) user [result]) >> putTMVar answer result)
  forM_ [1 .. 20 :: Int] $ \n -> forkIO . forever $ do
    forM_ [1 .. 100 :: Int] $ \k -> do
      box <- newEmptyTMVarIO
      atomically (writeTBQueue queue (n * 7 + k `mod` 50, 200 + k * 3, box))
      atomically (takeTMVar box)
    putMVar served ()
  () <$ forkIO (forever (replicateM_ 10 (takeMVar served) >> done))

-- | A list with all its cells: a thunk of them would keep the list from before, and that the one before.
evaluated :: [a] -> [a]
evaluated xs = foldr seq xs xs

{-# NOINLINE digest #-}
digest :: Int -> Int -> Int
digest seed rounds = go rounds seed
  where
    go 0 !h = h `mod` 1000003
    go k !h = go (k - 1 :: Int) ((h * 31 + k) `mod` 2147483647)
