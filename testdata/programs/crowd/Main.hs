{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE CPP #-}
-- Many threads that wait, each at the bottom of a recursion of its own depth, beside one that runs and
-- looks at the clock.
--
-- Must show: a dump has every thread, with its whole stack: thread n has n mod DEPTH frames of
-- Main.down. The thread that runs stands still for no longer than the dump says.
--
-- Output: `ready THREADS`; then, for each line on standard input, `gap NANOSECONDS`: the longest time
-- between two looks at the clock since the line before. It ends when standard input does.
--
-- A thread that runs by "alloc" allocates, so that collections run; by "fork" it also starts threads that
-- wait, and lets others end; by "grow" its stack grows and shrinks; by "collect" it does nothing but major
-- collections. By "idle" there is none.
--
-- usage: crowd [THREADS [DEPTH [spin|alloc|fork|grow|collect|idle]]]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.IORef
import Data.Word (Word64)
import GHC.Clock (getMonotonicTimeNSec)
import System.Environment (getArgs)
import System.IO
import System.IO.Unsafe (unsafeDupablePerformIO)
import System.Mem (performMajorGC)

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  let (threads, depth, mode) = case args of
        [t] -> (read t, 8, "spin")
        [t, d] -> (read t, read d, "spin")
        [t, d, m] -> (read t, read d, m)
        _ -> (10000, 8, "spin") :: (Int, Int, String)
  gates <- forM [0 .. threads - 1] $ \n -> do
    gate <- newEmptyMVar
    there <- newEmptyMVar
    _ <- forkIO (stand gate there (n `mod` depth))
    takeMVar there
    return gate
  performMajorGC
  longest <- newIORef 0
  case mode of
    "alloc" -> void (forkIO (look longest (evaluate (length (show [1 .. 200 :: Int])))))
    "fork" -> do
      gone <- newIORef []
      void (forkIO (look longest (churn gone)))
    "grow" -> void (forkIO (look longest (evaluate (deep 100000))))
    "collect" -> void (forkIO (look longest (performMajorGC >> return 0)))
    "idle" -> return ()
    _ -> void (forkIO (look longest (return 0)))
  putStrLn ("ready " ++ show threads)
  answer longest
  forM_ gates $ \gate -> putMVar gate 0

stand :: MVar Word64 -> MVar () -> Int -> IO ()
stand gate there n = do
  !_ <- evaluate (down gate there n)
  return ()
{-# NOINLINE stand #-}

-- One return frame a level.
down :: MVar Word64 -> MVar () -> Int -> Word64
down gate there 0 = bottom gate there
down gate there n = 1 + down gate there (n - 1)
{-# NOINLINE down #-}

bottom :: MVar Word64 -> MVar () -> Word64
bottom gate there = unsafeDupablePerformIO (putMVar there () >> takeMVar gate)
{-# NOINLINE bottom #-}

-- Its stack has many chunks, most of which come and go.
deep :: Int -> Int
deep 0 = 0
deep n = 1 + deep (n - 1)
{-# NOINLINE deep #-}

-- Starts a thread that waits, and has the eldest of a hundred end.
churn :: IORef [MVar Word64] -> IO Int
churn gone = do
  gate <- newEmptyMVar
  there <- newEmptyMVar
  _ <- forkIO (stand gate there 3)
  takeMVar there
  gates <- readIORef gone
  let (kept, old) = splitAt 100 (gate : gates)
  forM_ old $ \g -> putMVar g 0
  n <- evaluate (length kept)
  writeIORef gone kept
  return n

-- Looks at the clock again and again, with work between.
look :: IORef Word64 -> IO Int -> IO ()
look longest work = getMonotonicTimeNSec >>= go
  where
    go !before = do
      n <- work
      now <- n `seq` getMonotonicTimeNSec
      when (now - before > 50000) $ atomicModifyIORef' longest (\l -> (max l (now - before), ()))
      go now
{-# NOINLINE look #-}

answer :: IORef Word64 -> IO ()
answer longest = do
  over <- isEOF
  unless over $ do
    _ <- getLine
    gap <- atomicModifyIORef' longest (\l -> (0, l))
    putStrLn ("gap " ++ show gap)
    answer longest
