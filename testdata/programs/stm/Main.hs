{-# LANGUAGE BangPatterns #-}
-- Transactions: work inside atomically, orElse, retry and catchSTM.
--
-- Must show: the frames of atomically, catch_retry and catch_stm in the stacks of
-- Main.spin; blocked threads take no samples.
--
-- usage: stm [ROUNDS]
module Main (main) where

import Control.Concurrent (forkIO)
import Control.Concurrent.STM
import Control.Exception
import Control.Monad (forM_)
import Data.Word (Word64)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let rounds = case args of
        r : _ -> read r
        [] -> 2000 :: Int
  requests <- newTVarIO (0 :: Int)
  replies <- newTVarIO (0 :: Int)
  total <- newTVarIO (1 :: Word64)
  _ <- forkIO (forM_ [1 .. rounds] (serve requests replies total))
  forM_ [1 .. rounds] $ \n -> do
    atomically (writeTVar requests n)
    atomically (readTVar replies >>= \r -> check (r >= n))
  readTVarIO total >>= print

-- Waits for request n, then works inside the transaction: the left branch of
-- orElse always retries, the right one throws and is caught every third time.
serve :: TVar Int -> TVar Int -> TVar Word64 -> Int -> IO ()
serve requests replies total n = atomically $ do
  r <- readTVar requests
  check (r >= n)
  x <- readTVar total
  y <- (spin 20000 x `seq` retry) `orElse` caught x
  writeTVar total $! y
  writeTVar replies n
  where
    caught x = work x `catchSTM` \e -> case e of
      Overflow -> return (x + 1)
      other -> throwSTM other
    work x = do
      let !y = spin 100000 x
      if n `rem` 3 == 0 then throwSTM Overflow else return y

{-# NOINLINE spin #-}
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
