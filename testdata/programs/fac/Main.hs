{-# LANGUAGE BangPatterns #-}
-- fac n = foldr (*) 1 [1..n], the example of Wortmann & Duke 2013: at -O2 the
-- list is fused away and the inner loop is made from the enumeration, the fold
-- and the line below all at once.
--
-- Must show: the loop's samples on Main.fac's line; where the library has source
-- notes, on the library's lines too.
--
-- usage: fac [N [ROUNDS]]
module Main (main) where

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
loop n k acc = loop n (k - 1) (acc + fac (n + k `rem` 2))

{-# NOINLINE fac #-}
fac :: Int -> Int
fac n = foldr (*) 1 [1 .. n]
