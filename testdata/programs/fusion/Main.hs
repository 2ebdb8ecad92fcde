{-# LANGUAGE BangPatterns #-}
-- A pipeline that a rewrite rule of module Stream fuses into one loop.
--
-- Must show: the loop of Main.sumOfSquares carries source notes of Main.hs and of
-- Stream.hs on one block: overlapping causes, neither of them wrong.
--
-- usage: fusion [N [ROUNDS]]
module Main (main) where

import Stream (consume, squares, upTo)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (n, rounds) = case args of
        [x, r] -> (x, r)
        [x] -> (x, 400000)
        _ -> (1000, 400000) :: (Int, Int)
  print (loop n rounds 0)

loop :: Int -> Int -> Int -> Int
loop _ 0 !acc = acc
loop n k acc = loop n (k - 1) (acc + sumOfSquares (n + k `rem` 2))

{-# NOINLINE sumOfSquares #-}
sumOfSquares :: Int -> Int
sumOfSquares n = consume (+) 0 (squares (upTo n))
