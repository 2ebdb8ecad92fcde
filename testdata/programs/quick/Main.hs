-- Over before a sampler has looked: ends within 10 ms.
--
-- Must show: a capture without a sample, or with very few, is reported as what it
-- is, and the program's exit status and output still come through.
--
-- usage: quick [STATUS]      prints its arguments, ends with the status
module Main (main) where

import System.Environment (getArgs)
import System.Exit

main :: IO ()
main = do
  args <- getArgs
  putStrLn (unwords ("quick" : args))
  case map read args of
    n : _ | n /= 0 -> exitWith (ExitFailure n)
    _ -> exitSuccess
