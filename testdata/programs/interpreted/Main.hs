{-# LANGUAGE BangPatterns #-}
-- To be run by ghc -e main: bytecode, which waits for a library's compiled code.
--
-- Must show: Data.Map's code, called by (bytecode).
module Main (main) where

import qualified Data.Map.Strict as Map

main :: IO ()
main = go 100 0

go :: Int -> Int -> IO ()
go 0 !a = print a
go n !a = case Map.size (Map.fromList (zip (map (`rem` 1009) [n * 7919 ..]) [1 .. 20000 :: Int])) of
  !s -> go (n - 1) (a + s)
