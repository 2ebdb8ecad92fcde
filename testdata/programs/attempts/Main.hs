{-# LANGUAGE BangPatterns #-}
-- A server whose transactions count their own attempts: clients put requests on a queue, workers take them, write
-- what all of them share, and answer.
--
-- Must show: of `stm`, as many attempts as the program counts, by how they end, both by windows and by samples.
--
-- Each attempt counts itself where nothing undoes it; one that is about to wait counts that. What else has not
-- committed has failed.
--
-- Output: `started S committed C retried R failed F`
--
-- usage: attempts [REQUESTS [CLIENTS [WORKERS]]]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Monad
import Foreign.Marshal.Alloc (mallocBytes)
import Foreign.Ptr (Ptr, plusPtr)
import Foreign.Storable (peek, poke)
import GHC.Conc (unsafeIOToSTM)
import System.Environment (getArgs)

-- | A thread's own counts: attempts that began, committed, and waited.
newtype Counts = Counts (Ptr Int)

newCounts :: IO Counts
newCounts = do
  p <- mallocBytes 128 -- no two threads write to one line of the cache
  forM_ [0, 8, 16] $ \o -> poke (p `plusPtr` o) (0 :: Int)
  return (Counts p)

count :: Counts -> Int -> IO ()
count (Counts p) n = do
  let at = p `plusPtr` (8 * n) :: Ptr Int
  !v <- peek at
  poke at (v + 1)
{-# INLINE count #-}

-- | Runs a transaction that counts its attempts.
run :: Counts -> STM a -> IO a
run c t = do
  x <- atomically (unsafeIOToSTM (count c 0) >> t)
  count c 1
  return x
{-# INLINE run #-}

-- | Waits for a variable to be full, and counts that.
wait :: Counts -> STM a
wait c = unsafeIOToSTM (count c 2) >> retry
{-# INLINE wait #-}

take' :: Counts -> TVar (Maybe a) -> STM a
take' c v = readTVar v >>= maybe (wait c) (\x -> writeTVar v Nothing >> return x)
{-# INLINE take' #-}

put' :: Counts -> TVar (Maybe a) -> a -> STM ()
put' c v x = readTVar v >>= maybe (writeTVar v (Just x)) (const (wait c))
{-# INLINE put' #-}

type Request = (Int, TVar (Maybe Int))

client :: Counts -> TVar (Maybe Request) -> Int -> IO ()
client c queue n = forM_ [1 .. n] $ \k -> do
  box <- newTVarIO Nothing
  run c (put' c queue (k, box))
  run c (take' c box)
{-# NOINLINE client #-}

worker :: Counts -> TVar (Maybe Request) -> [TVar Int] -> IO ()
worker c queue shared = forever $ do
  (k, box) <- run c (take' c queue)
  run c $ do
    total <- foldM (\ !s v -> (+ s) <$> readTVar v) 0 shared
    let v = shared !! (k `mod` length shared)
    x <- readTVar v
    writeTVar v $! x + total `mod` 2 + 1
    writeTVar box (Just x)
{-# NOINLINE worker #-}

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (requests, clients, workers) = case args of
        [r] -> (r, 20, 4)
        [r, c] -> (r, c, 4)
        [r, c, w] -> (r, c, w)
        _ -> (200000, 20, 4) :: (Int, Int, Int)
  queue <- newTVarIO Nothing
  shared <- replicateM 30 (newTVarIO 0)
  counts <- forM [1 .. workers] $ \_ -> do
    c <- newCounts
    _ <- forkIO (worker c queue shared)
    return c
  dones <- forM [1 .. clients] $ \_ -> do
    c <- newCounts
    done <- newEmptyMVar
    _ <- forkIO (client c queue (requests `div` clients) >> putMVar done ())
    return (c, done)
  mapM_ (takeMVar . snd) dones
  let of' n = sum <$> mapM (\(Counts p) -> peek (p `plusPtr` (8 * n))) (counts ++ map fst dones) :: IO Int
  -- The workers wait for the queue, each in an attempt that has ended.
  started <- of' 0
  committed <- of' 1
  retried <- of' 2
  putStrLn (unwords ["started", show started, "committed", show committed, "retried", show retried, "failed", show (started - committed - retried)])
