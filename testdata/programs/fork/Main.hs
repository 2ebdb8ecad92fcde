{-# LANGUAGE BangPatterns #-}
-- A program with children: some forked without exec, some started anew.
--
-- Must show: samples of Main.spin under each child's own process id, resolved by
-- that process's mappings; other programs that it starts are not taken for Haskell.
--
-- Output: `parent PID`, then one line a child in order: `forked PID` or
-- `started PID`, then `done`.
--
-- usage: fork [CHILDREN [ITERATIONS]]
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad (forM, forM_, void)
import Data.Word (Word64)
import System.Environment (getArgs, getExecutablePath)
import System.Exit
import System.IO
import System.Posix.Process

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  args <- getArgs
  case args of
    ["child", n] -> work (read n)
    [] -> parent 2 500000000
    [c] -> parent (read c) 500000000
    c : n : _ -> parent (read c) (read n)

parent :: Int -> Int -> IO ()
parent children n = do
  self <- getExecutablePath
  me <- getProcessID
  putStrLn ("parent " ++ show me)
  pids <- forM [1 .. children] $ \k ->
    if odd k
      then (,) "forked" <$> forkProcess (work n)
      else (,) "started" <$> forkProcess (executeFile self False ["child", show n] Nothing)
  forM_ pids $ \(how, pid) -> putStrLn (how ++ " " ++ show pid)
  work n
  forM_ pids $ \(_, pid) -> do
    status <- getProcessStatus True False pid
    case status of
      Just (Exited ExitSuccess) -> return ()
      _ -> die ("fork: child " ++ show pid ++ ": " ++ show status)
  putStrLn "done"

work :: Int -> IO ()
work n = void (evaluate (spin n 1))

{-# NOINLINE spin #-}
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
