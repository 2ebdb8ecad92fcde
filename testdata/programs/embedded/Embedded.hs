{-# LANGUAGE ForeignFunctionInterface #-}
-- Haskell in a shared library, which a program in C loads when it runs (host.c).
--
-- Must show: nearly all time in Embedded.heavy.
module Embedded where

import Data.List (foldl')

foreign export ccall busy :: Int -> IO Int

busy :: Int -> IO Int
busy n = pure $! heavy n

{-# NOINLINE heavy #-}
heavy :: Int -> Int
heavy n = foldl' (\a x -> (a * 31 + x) `rem` 1000003) 7 [1 .. n]
