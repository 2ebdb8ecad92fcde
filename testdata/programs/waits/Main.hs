{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE CApiFFI #-}
-- Waits in four ways, each for a time of its own, between collections and switches
-- of threads.
--
-- Must show: off the CPU, Main.sleepSafely has 4 × MILLISECONDS and
-- Main.sleepUnsafely 2 × MILLISECONDS (less where a signal of the RTS's ticker ends a
-- sleep early), each from C that Haskell called; Main.delay,
-- whose thread sleeps while its capability idles, has nothing. Over time: as many
-- collections, with the same figures, and as many runs and stops of threads, as the
-- RTS's own eventlog has; a thread that is called "worker λ".
--
-- Output: `safe S unsafe U delay D`, the measured times in microseconds, and a sum.
--
-- usage: waits [MILLISECONDS]
module Main (main) where

import Control.Concurrent
import Control.Monad (forM_)
import qualified Data.Map.Strict as Map
import Data.Word (Word32)
import Foreign.C.Types
import GHC.Clock (getMonotonicTimeNSec)
import GHC.Conc (labelThread)
import System.Environment (getArgs)

foreign import capi safe "unistd.h usleep" usleepSafe :: CUInt -> IO CInt
foreign import capi unsafe "unistd.h usleep" usleepUnsafe :: CUInt -> IO CInt

sleepSafely :: Int -> Word32 -> IO ()
sleepSafely 0 _ = return ()
sleepSafely n ms = usleepSafe (CUInt (ms * 500)) >> sleepSafely (n - 1) ms
{-# NOINLINE sleepSafely #-}

sleepUnsafely :: Int -> Word32 -> IO ()
sleepUnsafely 0 _ = return ()
sleepUnsafely n ms = usleepUnsafe (CUInt (ms * 500)) >> sleepUnsafely (n - 1) ms
{-# NOINLINE sleepUnsafely #-}

delay :: Word32 -> IO ()
delay ms = threadDelay (fromIntegral ms * 3000)
{-# NOINLINE delay #-}

build :: Int -> Int
build n = Map.foldl' (+) 0 (Map.fromList [(i * 7919 `mod` 100003, i) | i <- [1 .. n]])
{-# NOINLINE build #-}

timed :: IO () -> IO Int
timed act = do
  t0 <- getMonotonicTimeNSec
  act
  t1 <- getMonotonicTimeNSec
  return (fromIntegral (t1 - t0) `div` 1000)

main :: IO ()
main = do
  args <- getArgs
  let ms = case args of
        [a] -> read a
        _ -> 50
  ask <- newEmptyMVar
  answer <- newEmptyMVar
  worker <- forkIO $ forM_ [1 .. 20 :: Int] $ \_ -> takeMVar ask >>= \n -> putMVar answer $! build n
  labelThread worker "worker λ"
  let work !total n
        | n > 20 = return total
        | otherwise = do
            putMVar ask (2000 * n)
            r <- takeMVar answer
            work (total + r) (n + 1)
  total <- work 0 1
  s <- timed (sleepSafely 8 ms)
  u <- timed (sleepUnsafely 4 ms)
  d <- timed (delay ms)
  putStrLn ("safe " ++ show s ++ " unsafe " ++ show u ++ " delay " ++ show d ++ " sum " ++ show (total :: Int))
