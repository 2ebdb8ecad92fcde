{-# LANGUAGE ForeignFunctionInterface #-}
-- Haskell that a program in another language calls: in a shared library that it loads when it runs
-- (host.c, host.py), or linked in (linked.c).
--
-- Must show: nearly all time in Embedded.heavy where busy is called; all that is allocated in
-- Embedded.list and Data.Map where churn is.
module Embedded where

import Data.List (foldl')
import qualified Data.Map.Strict as Map

foreign export ccall busy :: Int -> IO Int

busy :: Int -> IO Int
busy n = pure $! heavy n

{-# NOINLINE heavy #-}
heavy :: Int -> Int
heavy n = foldl' (\a x -> (a * 31 + x) `rem` 1000003) 7 [1 .. n]

foreign export ccall churn :: Int -> IO Int

churn :: Int -> IO Int
churn n = pure $! Map.foldl' (+) 0 (Map.fromList (list n))

{-# NOINLINE list #-}
list :: Int -> [(Int, Int)]
list n = [(x * 7919 `rem` 100003, x) | x <- [1 .. n]]
