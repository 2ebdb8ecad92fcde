{-# LANGUAGE CPP #-}
{-# LANGUAGE ForeignFunctionInterface #-}
-- Threads in every state in which a thread can wait, at a moment when the program stands still.
--
-- Must show: a dump has the threads, labels and states that this program prints, waiting
-- for the same MVars, and names the deadlocks of two and the queues.
--
-- Output: a line `thread TSO LABEL` for each thread that it forks; where GHC has listThreads (9.6
-- on) then a line `status TSO LABEL STATUS` for every thread that there is; last `ready`. It ends
-- when standard input does.
--
-- usage: standstill [COPIES [QUEUE]]
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Exception
import Control.Monad
import Data.IORef
import Foreign.C.Types
import GHC.Conc (ThreadStatus (..), labelThread, threadStatus)
#if MIN_VERSION_base(4,18,0)
import Data.Maybe (fromMaybe)
import GHC.Conc.Sync (listThreads, threadLabel)
#endif
import System.Environment (getArgs)
import System.IO
import System.IO.Unsafe (unsafePerformIO)

foreign import ccall safe "sleep" c_sleep :: CUInt -> IO CUInt

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  let (copies, queue) = case map read args of
        [c] -> (c, 3)
        [c, q] -> (c, q)
        _ -> (1, 3) :: (Int, Int)
  kept <- newIORef []
  forM_ [1 .. copies] $ \_ -> standstill kept queue
  threads <- readIORef kept
  -- Those that were woken on the way wait again.
  let settled = do
        states <- mapM threadStatus threads
        when (ThreadRunning `elem` states) (yield >> settled)
  settled
#if MIN_VERSION_base(4,18,0)
  myThreadId >>= \me -> labelThread me "main thread"
  every <- listThreads
  forM_ every $ \t -> do
    label <- fromMaybe "" <$> threadLabel t
    status <- threadStatus t
    putStrLn ("status " ++ drop 9 (show t) ++ " " ++ show label ++ " " ++ show status)
#endif
  putStrLn "ready"
  eof
  print (length threads)

eof :: IO ()
eof = do
  end <- isEOF
  unless end (getLine >> eof)

-- start forks a thread and waits until it has the state that is expected.
start :: IORef [ThreadId] -> String -> (ThreadStatus -> Bool) -> IO () -> IO ThreadId
start kept label expected work = do
  t <- forkIO (work `catch` \e -> const (return ()) (e :: BlockedIndefinitelyOnMVar))
  labelThread t label
  modifyIORef' kept (t :)
  putStrLn ("thread " ++ drop 9 (show t) ++ " " ++ show label)
  let wait = do
        status <- threadStatus t
        unless (expected status) (yield >> wait)
  wait
  return t

blockedOn :: ([String] -> Bool) -> ThreadStatus -> Bool
blockedOn is status = is (words (show status))

mvar, blackHole, stm, exception, foreignCall :: ThreadStatus -> Bool
mvar = blockedOn (elem "BlockedOnMVar")
blackHole = blockedOn (elem "BlockedOnBlackHole")
stm = blockedOn (elem "BlockedOnSTM")
exception = blockedOn (elem "BlockedOnException")
foreignCall = blockedOn (\w -> "BlockedOnForeignCall" `elem` w || "BlockedOnOther" `elem` w)

standstill :: IORef [ThreadId] -> Int -> IO ()
standstill kept queue = do
  let begin = start kept
  -- A lock that one thread holds while it sleeps in a foreign call, and a queue for it.
  lock <- newMVar ()
  _ <- if rtsSupportsBoundThreads
    then begin "holder" foreignCall (withMVar lock $ \_ -> void (c_sleep 100000))
    else begin "holder" (/= ThreadRunning) (withMVar lock $ \_ -> threadDelay 1000000000)
  forM_ [1 .. queue] $ \i -> begin ("waiter " ++ show i) mvar (withMVar lock return)
  -- Two locks that two threads take in opposite order.
  left <- newMVar 'l'
  right <- newMVar 'r'
  go <- newEmptyMVar
  first <- newEmptyMVar
  _ <- begin "left first" mvar (withMVar left $ \_ -> putMVar first () >> takeMVar go >> withMVar right (void . evaluate))
  takeMVar first
  _ <- begin "right first" mvar (withMVar right $ \_ -> withMVar left (void . evaluate))
  putMVar go ()
  -- A value that nobody takes, and one that nobody gives.
  full <- newMVar ()
  _ <- begin "putter" mvar (putMVar full ())
  none <- newEmptyMVar :: IO (MVar ())
  _ <- begin "reader" mvar (readMVar none)
  -- A thunk whose evaluation waits, and who wants its value.
  gate <- newEmptyMVar
  let slow = unsafePerformIO (takeMVar gate) :: Int
  _ <- begin "evaluator" mvar (void (evaluate (slow + 1)))
  _ <- begin "forcer 1" blackHole (void (evaluate (slow + 2)))
  _ <- begin "forcer 2" blackHole (void (evaluate (slow + 3)))
  -- A transaction that waits for two variables.
  one <- newTVarIO False
  two <- newTVarIO False
  _ <- begin "transaction" stm (atomically $ do { a <- readTVar one; b <- readTVar two; unless (a && b) retry })
  -- An exception for a thread that takes none.
  deaf <- begin "deaf" mvar (uninterruptibleMask_ (void (readMVar none)))
  _ <- begin "thrower" exception (throwTo deaf ThreadKilled)
  -- A delay: in the threaded way an MVar of the timer manager's.
  _ <- begin "sleeper" (blockedOn (/= ["ThreadRunning"])) (threadDelay 1000000000)
  -- What they wait for stays reachable, so that no collection wakes them.
  hold <- newIORef (lock, left, right, full, none, gate, one, two)
  modifyIORef' holders (hold :)

type Held = (MVar (), MVar Char, MVar Char, MVar (), MVar (), MVar Int, TVar Bool, TVar Bool)

holders :: IORef [IORef Held]
holders = unsafePerformIO (newIORef [])
{-# NOINLINE holders #-}
