{-# LANGUAGE BangPatterns #-}
-- A transaction that reads ten variables and fails, nine times of ten because of the fourth: another thread has written it.
--
-- Must show: of the attempts of Main.runSum that fail, the part in which the fourth variable had changed, and in which one of
-- the others had, as the program says; that Main.runBump wrote the fourth, and Main.runTouch the others.
--
-- At the end of an attempt the transaction has the other thread write a variable, in every second attempt: so each sum fails once.
-- Of ten such writes nine are to the fourth variable, the hot one, and one is to another, each in turn.
--
-- Output: `sums N hot H cold C`: sums that have committed, and attempts that have failed because of the hot and of a cold variable.
--
-- usage: hot [SUMS [WORK]]
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Monad
import Data.IORef
import Data.Word (Word64)
import GHC.Conc (unsafeIOToSTM)
import System.Environment (getArgs)

-- | Rounds of work for one variable.
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
{-# NOINLINE spin #-}

sumUp :: Int -> MVar () -> MVar () -> IORef Bool -> [TVar Word64] -> STM Word64
sumUp work ask done failed variables = do
  total <- foldM (\ !s v -> (\x -> spin work (s + x)) <$> readTVar v) 0 variables
  again <- unsafeIOToSTM (readIORef failed)
  unless (again || total == 0) $ unsafeIOToSTM $ do
    writeIORef failed True
    putMVar ask ()
    takeMVar done
  return total
{-# NOINLINE sumUp #-}

runSum :: Int -> MVar () -> MVar () -> IORef Bool -> [TVar Word64] -> IO Word64
runSum work ask done failed variables = atomically (sumUp work ask done failed variables)
{-# NOINLINE runSum #-}

bump :: TVar Word64 -> STM ()
bump v = modifyTVar' v (+ 1)
{-# NOINLINE bump #-}

runBump :: TVar Word64 -> IO ()
runBump v = atomically (bump v)
{-# NOINLINE runBump #-}

touch :: TVar Word64 -> STM ()
touch v = modifyTVar' v (+ 2)
{-# NOINLINE touch #-}

runTouch :: TVar Word64 -> IO ()
runTouch v = atomically (touch v)
{-# NOINLINE runTouch #-}

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (sums, work) = case args of
        [s] -> (s, 2000)
        [s, w] -> (s, w)
        _ -> (1000, 2000) :: (Int, Int)
  variables <- mapM newTVarIO [1 .. 10]
  let hot = variables !! 3
      cold = take 3 variables ++ drop 4 variables
  ask <- newEmptyMVar
  done <- newEmptyMVar
  failed <- newIORef False
  counts@[hots, colds] <- replicateM 2 (newIORef (0 :: Int))
  _ <- forkIO $ forM_ [1 :: Int ..] $ \n -> do
    takeMVar ask
    if n `mod` 10 == 0
      then runTouch (cold !! (n `div` 10 `mod` 9)) >> modifyIORef' colds (+ 1)
      else runBump hot >> modifyIORef' hots (+ 1)
    putMVar done ()
  forM_ [1 .. sums] $ \_ -> do
    writeIORef failed False
    !_ <- runSum work ask done failed variables
    return ()
  [h, c] <- mapM readIORef counts
  putStrLn (unwords ["sums", show sums, "hot", show h, "cold", show c])
