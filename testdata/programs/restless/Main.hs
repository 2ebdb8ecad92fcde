-- Forks again and again, or becomes itself again and again, and collects its heap before and behind each.
--
-- * fork: children collect their heaps too, and end with status 3; it ends with status 7 at the next line of its
--   standard input, or with 1 if a child has ended otherwise
-- * spawn: likewise, and the children execute this program, which ends at once with status 3
-- * exec: it executes itself ROUNDS times, and then ends with status 7
--
-- Must show: a census in the middle of any of these leaves nothing stopped, and changes no status.
--
-- usage: restless fork|spawn | exec ROUNDS
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad (unless, when)
import Data.IORef
import qualified Data.Map.Strict as M
import System.Environment (getArgs, getExecutablePath)
import System.Exit
import System.IO
import System.Mem (performMajorGC)
import System.Posix.Process

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  when (args == ["end"]) $ exitImmediately (ExitFailure 3)
  self <- getExecutablePath
  -- What a census copies takes its time.
  kept <- newIORef $! M.fromList [(i, show i) | i <- [1 .. 20000 :: Int]]
  case args of
    ["exec", rounds] -> again self (read rounds)
    [mode] -> do
      putStrLn "ready"
      children (if mode == "spawn" then executeFile self False ["end"] Nothing else performMajorGC)
    _ -> die "usage: restless fork|spawn | exec ROUNDS"
  _ <- evaluate . M.size =<< readIORef kept
  exitWith (ExitFailure 7)

children :: IO () -> IO ()
children act = do
  performMajorGC
  pid <- forkProcess (act >> exitImmediately (ExitFailure 3))
  performMajorGC
  status <- getProcessStatus True False pid
  unless (status == Just (Exited (ExitFailure 3))) $ die ("a child: " ++ show status)
  more <- hReady stdin
  unless more (children act)

again :: FilePath -> Int -> IO ()
again _ 0 = return ()
again self n = do
  performMajorGC
  performMajorGC
  putStrLn "ready"
  executeFile self False ["exec", show (n - 1)] Nothing
