{-# LANGUAGE BangPatterns #-}
-- Threads that each wake by a timer of so many microseconds, and then work for a third of
-- that: a part in first, and twice as much in second.
--
-- Must show: each thread's shares of first and second as the program measured them, within
-- binomial bounds, whatever the timers.
--
-- usage: timers MILLISECONDS PERIOD…      prints "thread ID first second", in ns of CPU time
module Main where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.IORef
import Data.Word (Word64)
import System.CPUTime (getCPUTime)
import System.Environment (getArgs)

main :: IO ()
main = do
  total : periods <- map read <$> getArgs
  -- How many turns a microsecond takes: the best of some, as others may run.
  let few = 200000
  costs <- forM [1 .. 10 :: Word64] $ \i -> do
    (_, ns) <- timed (first few i)
    return (max 1 ns)
  let turns us = max 1 (us * few * 1000 `div` fromIntegral (minimum costs))
  ends <- forM periods $ \period -> do
    end <- newEmptyMVar
    _ <- forkIO (work (total * 1000 `div` period) period (turns (period `div` 9)) end)
    return end
  mapM_ takeMVar ends

work :: Int -> Int -> Int -> MVar () -> IO ()
work rounds period n end = do
  spent <- newIORef (0, 0)
  forM_ [1 .. rounds] $ \i -> do
    threadDelay period
    (x, a) <- timed (first n (fromIntegral i))
    (_, b) <- timed (second (2 * n) x)
    modifyIORef' spent $ \(!p, !q) -> let { !p' = p + a; !q' = q + b } in (p', q')
  (a, b) <- readIORef spent
  me <- myThreadId
  putStrLn (unwords ["thread", drop 9 (show me), show a, show b])
  putMVar end ()

-- The loops allocate nothing, so no other thread runs meanwhile.
timed :: Word64 -> IO (Word64, Integer)
timed x = do
  before <- getCPUTime
  !y <- evaluate x
  after <- getCPUTime
  return (y, (after - before) `div` 1000)

{-# NOINLINE first #-}
first :: Int -> Word64 -> Word64
first 0 !x = x
first n x = first (n - 1) (x * 2862933555777941757 + 3037000493)

{-# NOINLINE second #-}
second :: Int -> Word64 -> Word64
second 0 !x = x
second n x = second (n - 1) (x * 3202034522624059733 + 4354685564)
