{-# LANGUAGE BangPatterns #-}
-- A server without a network: clients put requests on a queue and wait for their
-- answers, workers serve them and keep sessions in a map that all of them share.
-- Now and then a client asks for a report, which walks all sessions inside the
-- transaction that the others wait for.
--
-- Must show: threads that wait for a capability while workers are busy, samples in
-- STM, and the time of Main.report on the workers' threads.
--
-- usage: server [REQUESTS [CLIENTS [WORKERS]]]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Monad (forM_, forever, replicateM)
import qualified Data.List as List
import qualified Data.Map.Strict as Map
import Debug.Trace (traceMarkerIO)
import GHC.Conc (labelThread)
import System.Environment (getArgs)

data Request = Request {user :: !Int, work :: !Int, answer :: !(TMVar Int)}

type Sessions = TVar (Map.Map Int [Int])

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (requests, clients, workers) = case args of
        [r, c, w] -> (r, c, w)
        [r, c] -> (r, c, 4)
        [r] -> (r, 20, 4)
        _ -> (20000, 20, 4) :: (Int, Int, Int)
  queue <- newTBQueueIO 64
  sessions <- newTVarIO Map.empty
  forM_ [1 .. workers] $ \n -> do
    t <- forkIO (forever (atomically (readTBQueue queue) >>= serve sessions))
    labelThread t ("worker " ++ show n)
  traceMarkerIO "serving"
  totals <- newEmptyMVar
  forM_ [1 .. clients] $ \n -> do
    t <- forkIO (client queue n (requests `div` clients) >>= putMVar totals)
    labelThread t ("client " ++ show n)
  answers <- replicateM clients (takeMVar totals)
  traceMarkerIO "served"
  print (sum answers)

client :: TBQueue Request -> Int -> Int -> IO Int
client queue n count = go 1 0
  where
    go k !total
      | k > count = pure total
      | otherwise = do
          box <- newEmptyTMVarIO
          atomically (writeTBQueue queue (Request (n * 7 + k `mod` 50) (if k `mod` 40 == 0 then 0 else 200 + k `mod` 300) box))
          result <- atomically (takeTMVar box)
          go (k + 1) (total + result `mod` 2)

serve :: Sessions -> Request -> IO ()
serve sessions request
  | work request == 0 = atomically (report sessions >>= putTMVar (answer request) . (* 2))
  | otherwise = do
      let !result = digest (user request) (work request)
      atomically (remember sessions (user request) result >> putTMVar (answer request) (result * 2 + 1))

{-# NOINLINE remember #-}
remember :: Sessions -> Int -> Int -> STM ()
remember sessions who result = modifyTVar' sessions (Map.insertWith (\new old -> take 50 (new ++ old)) who [result])

-- | A sum over everything that is remembered.
{-# NOINLINE report #-}
report :: Sessions -> STM Int
report sessions = do
  all' <- readTVar sessions
  pure $! List.foldl' (\acc rs -> acc + sum rs) 0 (Map.elems all')

{-# NOINLINE digest #-}
digest :: Int -> Int -> Int
digest seed rounds = go rounds seed
  where
    go 0 !h = h `mod` 1000003
    go k !h = go (k - 1) ((h * 31 + k) `mod` 2147483647)
