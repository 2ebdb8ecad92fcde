{-# LANGUAGE BangPatterns #-}
-- A program that starts others, and becomes another, as it is asked to.
--
-- Must show: Main.spin until it executes another program, and nothing of that.
--
-- usage: execs < LINES      a line is "spin N", N millions of iterations; "fork N PROG", which starts PROG
--                           N times, one after the other; or "exec PROG ARGS". Each of the first two is
--                           answered with a line when it is through
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad (replicateM_, void)
import Data.Word (Word64)
import System.IO
import System.Posix.Process

main :: IO ()
main = hSetBuffering stdout LineBuffering >> loop

loop :: IO ()
loop = do
  end <- isEOF
  if end then return () else do
    asked <- words <$> getLine
    case asked of
      ["spin", n] -> void (evaluate (spin (read n * 1000000) 1))
      ["fork", n, program] -> replicateM_ (read n) $ do
        pid <- forkProcess (executeFile program False [] Nothing)
        getProcessStatus True False pid
      "exec" : program : args -> executeFile program False args Nothing
      _ -> error ("what is " ++ unwords asked ++ "?")
    putStrLn (unwords asked)
    loop

{-# NOINLINE spin #-}
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
