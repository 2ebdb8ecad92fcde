{-# LANGUAGE CApiFFI #-}
-- Threads that wait in five ways, and measure for how long they do.
--
-- Must show: of the event `blocked`, Main.pause, Main.receive, Main.awaitChange, Main.callOut and
-- Main.demand have the times that the program prints, and each its own kind of wait; on the stacks of black holes
-- Main.slow, which evaluates what they wait for.
--
-- Output: `pause P receive R awaitChange A callOut C demand D`, the measured times in microseconds,
-- summed over threads.
--
-- usage: blocked [ROUNDS [THREADS]]      a round takes 50 ms; each kind has so many threads
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception (evaluate)
import Control.Monad
import Data.IORef
import Foreign.C.Types
import GHC.Clock (getMonotonicTimeNSec)
import System.Environment (getArgs)
import System.IO.Unsafe (unsafePerformIO)

foreign import capi safe "unistd.h usleep" usleep :: CUInt -> IO CInt

period :: Int
period = 50000 -- µs

pause :: IO ()
pause = threadDelay period
{-# NOINLINE pause #-}

receive :: MVar () -> IO ()
receive = takeMVar
{-# NOINLINE receive #-}

awaitChange :: TVar Int -> Int -> IO ()
awaitChange v old = atomically $ readTVar v >>= \new -> when (new <= old) retry
{-# NOINLINE awaitChange #-}

callOut :: IO ()
callOut = void (usleep (fromIntegral period))
{-# NOINLINE callOut #-}

demand :: Int -> IO ()
demand n = void (evaluate (n + 1))
{-# NOINLINE demand #-}

-- A thunk whose evaluation takes a period.
slow :: Int -> IO Int
slow n = return (unsafePerformIO (threadDelay period >> return n))
{-# NOINLINE slow #-}

-- timed adds what an action takes to a sum, in µs.
timed :: IORef Int -> IO () -> IO ()
timed total act = do
  t0 <- getMonotonicTimeNSec
  act
  t1 <- getMonotonicTimeNSec
  atomicModifyIORef' total (\s -> (s + fromIntegral ((t1 - t0) `div` 1000), ()))

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (rounds, threads) = case args of
        [r] -> (r, 3)
        [r, n] -> (r, n)
        _ -> (40, 3) :: (Int, Int)
  done <- newEmptyMVar
  totals@[paused, received, awaited, called, demanded] <- replicateM 5 (newIORef 0)
  let fork = forkIO . (>> putMVar done ())
      workers k body = forM_ [1 .. threads] $ \_ -> fork (forM_ [1 .. rounds] (timed k . body))
  workers paused (const pause)
  workers called (const callOut)
  -- Who waits for these is served once in a period.
  box <- newEmptyMVar
  version <- newTVarIO 0
  thunks <- replicateM rounds newEmptyMVar
  workers received (const (receive box))
  workers awaited (\i -> awaitChange version (i - 1))
  forM_ [1 .. threads] $ \_ -> fork $ forM_ thunks $ \t -> readMVar t >>= timed demanded . demand
  _ <- fork $ forM_ thunks $ \t -> do
    n <- slow 1
    started <- newEmptyMVar
    _ <- forkIO (putMVar started () >> void (evaluate n)) -- who evaluates it
    takeMVar started
    yield
    putMVar t n
    threadDelay period
    replicateM_ threads (putMVar box ())
    atomically (modifyTVar' version (+ 1))
  replicateM_ (5 * threads + 1) (takeMVar done)
  sums <- mapM readIORef totals
  putStrLn (unwords (zipWith (\n s -> n ++ " " ++ show s) ["pause", "receive", "awaitChange", "callOut", "demand"] sums))
