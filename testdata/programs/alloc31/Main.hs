{-# LANGUAGE BangPatterns #-}
-- Two functions that allocate 3 : 1, in cells of the same size.
--
-- Must show: of the bytes allocated, 3/4 in Main.three and 1/4 in Main.one, within
-- binomial bounds. Each element is a cons cell (three words) and a boxed Int (two).
--
-- usage: alloc31 [ROUNDS]
module Main (main) where

import Data.Bits (shiftR)
import Data.Word (Word64)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let rounds = case args of
        r : _ -> read r
        [] -> 100000
  print (run rounds 1 0)

-- The length of rounds varies, so that sampling every n bytes cannot fall into
-- step with it.
run :: Int -> Word64 -> Int -> Int
run 0 !_ !acc = acc
run k seed acc = run (k - 1) seed' (acc + count (three (3 * n) []) - count (one n []))
  where
    seed' = seed * 6364136223846793005 + 1442695040888963407
    n = 500 + fromIntegral (seed' `shiftR` 54) -- 500 … 1523

{-# NOINLINE three #-}
three :: Int -> [Int] -> [Int]
three 0 xs = xs
three n xs = three (n - 1) (boxed : xs)
  where !boxed = n * 5 + 1

{-# NOINLINE one #-}
one :: Int -> [Int] -> [Int]
one 0 xs = xs
one n xs = one (n - 1) (boxed : xs)
  where !boxed = n * 7 + 3

{-# NOINLINE count #-}
count :: [Int] -> Int
count = go 0
  where
    go !acc [] = acc
    go acc (_ : xs) = go (acc + 1) xs
