{-# LANGUAGE BangPatterns #-}
-- Two functions with the same code shape whose time is 3 : 1.
--
-- Must show: Main.three with 3/4 and Main.one with 1/4 of the mutator's samples,
-- within binomial bounds.
--
-- Both run a chain of dependent multiplications, so that an iteration takes the
-- multiplier's latency wherever the loop is placed. Their constants differ, so
-- that GHC cannot share their code. Every round gives three times as many
-- iterations to one as to the other; the length of rounds varies, so that a
-- sampler's period cannot fall into step with it.
--
-- usage: spin31 [ROUNDS]      a round is about 0.1 ms; the default lasts about 8 s
module Main where

import Data.Bits (shiftR)
import Data.Word (Word64)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let rounds = case args of
        r : _ -> read r
        [] -> 80000
  print (run rounds 1 2)

run :: Int -> Word64 -> Word64 -> Word64
run 0 !_ !acc = acc
run k seed acc = run (k - 1) seed' (one n (three (3 * n) acc))
  where
    seed' = seed * 6364136223846793005 + 1442695040888963407
    n = 10000 + fromIntegral (seed' `shiftR` 50) -- 10,000 … 26,383

{-# NOINLINE three #-}
three :: Int -> Word64 -> Word64
three 0 !x = x
three n x = three (n - 1) (x * 2862933555777941757 + 3037000493)

{-# NOINLINE one #-}
one :: Int -> Word64 -> Word64
one 0 !x = x
one n x = one (n - 1) (x * 3202034522624059733 + 4354685564)
