-- Threads that wait for what nothing else can reach, beside such as something can.
--
-- Must show: `heap --graph` names alone, left, right, evaluator, forcer, transaction, deaf and thrower, and with an argument loose, whose
-- ThreadId nothing has; and neither main nor waiting, behind, watched, weak, slow, patient and stable.
--
-- Output: a line `thread TSO LABEL` for each thread, last `ready`. It ends when standard input has a line.
--
-- usage: stranded [loose]
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Data.IORef
import Foreign.StablePtr
import GHC.Conc (ThreadStatus (..), labelThread, threadStatus)
import System.Environment (getArgs)
import System.IO
import System.IO.Unsafe (unsafePerformIO)

-- start forks a thread and waits until it waits.
start :: String -> IO () -> IO ThreadId
start label work = do
  t <- forkIO (work `catch` \e -> const (return ()) (e :: BlockedIndefinitelyOnMVar))
  labelThread t label
  putStrLn ("thread " ++ drop 9 (show t) ++ " " ++ label)
  let wait = do
        status <- threadStatus t
        case status of
          ThreadBlocked _ -> return ()
          _ -> yield >> wait
  wait
  return t

stranded :: IORef [ThreadId] -> IO ()
stranded kept = do
  let begin label work = start label work >>= \t -> modifyIORef' kept (t :) >> return t
  alone <- newEmptyMVar
  _ <- begin "alone" (takeMVar alone)
  left <- newMVar 'l'
  right <- newMVar 'r'
  go <- newEmptyMVar
  first <- newEmptyMVar
  _ <- begin "left" (withMVar left $ \_ -> putMVar first () >> takeMVar go >> withMVar right (void . evaluate))
  takeMVar first
  _ <- begin "right" (withMVar right $ \_ -> withMVar left (void . evaluate))
  putMVar go ()
  gate <- newEmptyMVar
  let slow = unsafePerformIO (takeMVar gate) :: Int
  _ <- begin "evaluator" (void (evaluate (slow + 1)))
  _ <- begin "forcer" (void (evaluate (slow + 2)))
  one <- newTVarIO False
  two <- newTVarIO False
  _ <- begin "transaction" (atomically $ do { a <- readTVar one; b <- readTVar two; unless (a && b) retry })
  none <- newEmptyMVar
  deaf <- begin "deaf" (uninterruptibleMask_ (readMVar none))
  void (begin "thrower" (throwTo deaf ThreadKilled))

reachable :: IORef [ThreadId] -> MVar () -> TVar Bool -> IO ()
reachable kept reached seen = do
  let begin label work = start label work >>= \t -> modifyIORef' kept (t :)
  next <- newEmptyMVar
  begin "waiting" (takeMVar reached >> putMVar next ())
  begin "behind" (takeMVar next)
  begin "watched" (atomically (readTVar seen >>= \s -> unless s retry))
  final <- newEmptyMVar
  _ <- mkWeakIORef kept (putMVar final ())
  begin "weak" (takeMVar final)
  -- A thunk whose evaluation takes its time, and who wants its value.
  let slowly = unsafePerformIO (threadDelay 1000000000 >> return 1) :: Int
  begin "slow" (void (evaluate (slowly + 1)))
  begin "patient" (void (evaluate (slowly + 2)))
  outside <- newEmptyMVar
  _ <- newStablePtr outside
  begin "stable" (takeMVar outside)

-- A thread whose ThreadId nothing has. The next collection ends it.
loose :: IO ()
loose = newEmptyMVar >>= \m -> void (start "loose" (takeMVar (m :: MVar ())))

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  kept <- newIORef []
  reached <- newEmptyMVar
  seen <- newTVarIO False
  stranded kept
  reachable kept reached seen
  -- The two locks: until both threads have one each, they do not wait for each other.
  threads <- readIORef kept
  let settled = do
        states <- mapM threadStatus threads
        when (ThreadRunning `elem` states) (yield >> settled)
  settled
  unless (null args) loose
  putStrLn "ready"
  _ <- getLine
  putMVar reached ()
  atomically (writeTVar seen True)
  mapM threadStatus threads >>= print . length
