{-# LANGUAGE BangPatterns #-}
-- Long transactions that short ones of another thread make fail: most of their work is thrown away.
--
-- Must show: of `stm`, as many attempts as the program counts, by how they end; of the CPU time inside of
-- transactions, the part that is thrown away as the program measures it: failed attempts of Main.runAudit.
--
-- A thread audits: it reads all accounts, with the same work for each. At the end of an attempt it has another thread make a
-- transfer, as often as the audit is to fail: of two audits the first fails once and the second twice, so three of five attempts
-- are thrown away, and 60 % of their CPU time.
--
-- Output: `audits N failed F transfers T exceptions E`: audits that have committed, attempts of them that have not, transfers, and
-- transactions that an exception has left. There are N more that write, and N that wait for that.
--
-- usage: conflict [AUDITS [FAILURES [WORK]]]     of two audits so many attempts fail
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Data.IORef
import Data.Word (Word64)
import GHC.Conc (unsafeIOToSTM)
import System.Environment (getArgs)
import System.IO.Unsafe (unsafePerformIO)

-- | Rounds of work for one account.
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
{-# NOINLINE spin #-}

-- | Attempts of audits, counted where nothing undoes it.
attempts :: IORef Int
attempts = unsafePerformIO (newIORef 0)
{-# NOINLINE attempts #-}

-- | Reads all accounts, with work for each. After the last but one it lets the other thread make a transfer, as
-- often as it is to fail, and waits until that is done.
audit :: Int -> MVar () -> MVar () -> IORef Int -> [TVar Word64] -> STM Word64
audit work ask done left accounts = do
  unsafeIOToSTM (modifyIORef' attempts (+ 1))
  total <- foldM (\ !s v -> (\x -> spin work (s + x)) <$> readTVar v) 0 accounts
  n <- unsafeIOToSTM (readIORef left)
  when (total /= 0 && n > 0) $ unsafeIOToSTM $ do
    writeIORef left (n - 1)
    putMVar ask ()
    takeMVar done
  return total
{-# NOINLINE audit #-}

runAudit :: Int -> MVar () -> MVar () -> IORef Int -> [TVar Word64] -> IO Word64
runAudit work ask done left accounts = atomically (audit work ask done left accounts)
{-# NOINLINE runAudit #-}

transfer :: TVar Word64 -> TVar Word64 -> STM ()
transfer from to = do
  modifyTVar' from (subtract 1)
  modifyTVar' to (+ 1)
{-# NOINLINE transfer #-}

runTransfer :: TVar Word64 -> TVar Word64 -> IO ()
runTransfer from to = atomically (transfer from to)
{-# NOINLINE runTransfer #-}

-- | Waits until the number of an audit is there.
await :: TVar Int -> Int -> STM ()
await current n = readTVar current >>= \c -> check (c >= n)
{-# NOINLINE await #-}

refuse :: TVar Word64 -> STM ()
refuse v = readTVar v >>= \x -> throwSTM (userError ("refused " ++ show (x `mod` 2)))
{-# NOINLINE refuse #-}

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (audits, failures, work) = case args of
        [a] -> (a, 3, 60000)
        [a, f] -> (a, f, 60000)
        [a, f, w] -> (a, f, w)
        _ -> (500, 3, 60000) :: (Int, Int, Int)
  accounts <- replicateM 10 (newTVarIO 1000)
  ask <- newEmptyMVar
  done <- newEmptyMVar
  left <- newIORef 0
  transfers <- newIORef (0 :: Int)
  _ <- forkIO $ forever $ do
    takeMVar ask
    runTransfer (head accounts) (last accounts)
    modifyIORef' transfers (+ 1)
    putMVar done ()
  current <- newTVarIO 0
  waited <- newEmptyMVar
  _ <- forkIO $ do
    forM_ [1 .. audits] $ \n -> atomically (await current n) >> putMVar waited ()
  threw <- newIORef (0 :: Int)
  forM_ [1 .. audits] $ \n -> do
    writeIORef left ((failures + n `mod` 2) `div` 2)
    !_ <- runAudit work ask done left accounts
    r <- try (atomically (refuse (head accounts)))
    case r of
      Left e -> modifyIORef' threw (+ length (take 1 (show (e :: IOException))))
      Right () -> return ()
    atomically (writeTVar current n)
    takeMVar waited
  n <- readIORef attempts
  t <- readIORef transfers
  e <- readIORef threw
  putStrLn (unwords ["audits", show audits, "failed", show (n - audits), "transfers", show t, "exceptions", show e])
