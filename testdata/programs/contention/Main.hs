{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE CApiFFI #-}
-- Threads in each other's way, a way a mode; and work that one thread does, which more capabilities make slower.
--
-- Must show: in a dump, `deadlock`: two threads, each with the account that the other waits for; `convoy`: six threads that wait
-- for the lock of a seventh, which is in a foreign call; `lazy`: six that want a value that a seventh computes by Main.table.
--
-- Output: `ready` where the program stands as it is to be looked at; it ends when standard input does. The modes `count` and
-- `squares` work, and print a result.
--
-- usage: contention deadlock|convoy|lazy
--        contention count|squares [ROUNDS]
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.IORef
import qualified Data.Map.Strict as Map
import Foreign.C.Types
import GHC.Conc (BlockReason (..), ThreadStatus (..), labelThread, threadStatus)
import System.Environment (getArgs)
import System.IO

foreign import capi safe "unistd.h sleep" cSleep :: CUInt -> IO CUInt

main :: IO ()
main = do
  args <- getArgs
  case args of
    ["deadlock"] -> deadlock >> stand
    ["convoy"] -> convoy >> stand
    ["lazy"] -> lazy >> stand
    "count" : n -> print (count (rounds 1000 n))
    "squares" : n -> print (squares (rounds 1000 n))
    _ -> error "usage: contention deadlock|convoy|lazy|count|squares"
  where
    rounds def = foldr (const . read) def

stand :: IO ()
stand = putStrLn "ready" >> hFlush stdout >> eof
  where eof = isEOF >>= \end -> unless end (getLine >> eof)

named :: String -> IO () -> IO ThreadId
named label work = do
  t <- forkIO work
  labelThread t label
  return t

-- until_ waits until a thread is in a state.
until_ :: (ThreadStatus -> Bool) -> ThreadId -> IO ()
until_ ok t = threadStatus t >>= \s -> unless (ok s) (yield >> until_ ok t)

onMVar, inCall, onBlackHole :: ThreadStatus -> Bool
onMVar = (== ThreadBlocked BlockedOnMVar)
inCall s = s `elem` [ThreadBlocked BlockedOnForeignCall, ThreadBlocked BlockedOnOther]
onBlackHole = (== ThreadBlocked BlockedOnBlackHole)

-- Two transfers between two accounts, in opposite directions: each locks the account that it takes from first.

transfer :: IO () -> MVar Int -> MVar Int -> IO ()
transfer met from to =
  modifyMVar_ from $ \a -> do
    met
    modifyMVar_ to (\b -> return $! b + 1)
    return $! a - 1
{-# NOINLINE transfer #-}

deadlock :: IO ()
deadlock = do
  checking <- newMVar 100
  savings <- newMVar 100
  entered <- newMVar (0 :: Int)
  both <- newEmptyMVar
  let met = do
        n <- modifyMVar entered (\n -> return (n + 1, n + 1))
        if n == 2 then putMVar both () else readMVar both
  a <- named "pay in" (transfer met checking savings)
  b <- named "pay out" (transfer met savings checking)
  readMVar both
  mapM_ (until_ onMVar) [a, b]
  keep (checking, savings)

-- A lock around a log that is written slowly: six requests wait for the seventh.

writeLog :: MVar () -> IO ()
writeLog lock = withMVar lock $ \_ -> void (cSleep 100000)
{-# NOINLINE writeLog #-}

convoy :: IO ()
convoy = do
  lock <- newMVar ()
  first <- named "request 1" (writeLog lock)
  until_ inCall first
  rest <- forM [2 .. 7 :: Int] $ \i -> named ("request " ++ show i) (writeLog lock)
  mapM_ (until_ onMVar) rest
  keep lock

-- A table that is computed when it is first wanted: six threads want it while one computes.

table :: Int -> Map.Map Int Int
table size = fill 0 Map.empty
  where
    fill n !m
      | n == maxBound = m
      | otherwise = fill (n + 1) (Map.insert (n * 7919 `mod` size) n m)
{-# NOINLINE table #-}

answer :: Map.Map Int Int -> Int -> IO ()
answer shared n = void (evaluate (Map.lookup n shared))
{-# NOINLINE answer #-}

lazy :: IO ()
lazy = do
  let shared = table 1000
  requests <- forM [1 .. 7 :: Int] $ \i -> named ("request " ++ show i) (answer shared i)
  let settled = do
        states <- mapM threadStatus requests
        unless (length (filter onBlackHole states) == 6) (yield >> settled)
  settled

-- keep has a value stay reachable.
keep :: a -> IO ()
keep x = do
  r <- newIORef x
  void (forkIO (threadDelay maxBound >> void (readIORef r)))

-- Work of one thread. The first keeps a large map alive, the second nothing.

count :: Int -> Int
count n = Map.foldl' (+) 0 (Map.fromListWith (+) [(i * 7919 `mod` 100003, i) | i <- [1 .. n * 1000]])
{-# NOINLINE count #-}

squares :: Int -> Integer
squares n = sum (map (\x -> x * x `mod` 7) [1 .. fromIntegral n * 10000])
{-# NOINLINE squares #-}
