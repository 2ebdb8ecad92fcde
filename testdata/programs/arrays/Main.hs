{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE MagicHash #-}
{-# LANGUAGE UnboxedTuples #-}
-- Large objects, which the run-time system allocates for the program, beside small
-- ones, for which the program's own code bumps a pointer.
--
-- Must show: of the bytes allocated, 3/5 in Main.wide, 1/5 in Main.narrow and 1/5 in
-- Main.cells. A round makes arrays of 240000 and of 80000 bytes, and a list of 2000
-- elements of 40 bytes.
--
-- usage: arrays [ROUNDS]
module Main (main) where

import GHC.Exts
import GHC.ST (ST (..), runST)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let rounds = case args of
        r : _ -> read r
        [] -> 20000
  print (run rounds 0)

run :: Int -> Int -> Int
run 0 !acc = acc
run k acc = run (k - 1) (acc + wide k + narrow k + total (cells 2000 [k]))

{-# NOINLINE wide #-}
wide :: Int -> Int
wide (I# k) = runST (ST (\s -> case newByteArray# 240000# s of (# s', a #) -> fill 240000# k a s'))

{-# NOINLINE narrow #-}
narrow :: Int -> Int
narrow (I# k) = runST (ST (\s -> case newByteArray# 80000# s of (# s', a #) -> fill 80000# k a s'))

{-# NOINLINE fill #-}
fill :: Int# -> Int# -> MutableByteArray# s -> State# s -> (# State# s, Int #)
fill n k a s = case setByteArray# a 0# n (k `andI#` 127#) s of
  s' -> case readIntArray# a 7# s' of (# s'', x #) -> (# s'', I# (x `andI#` 1#) #)

{-# NOINLINE cells #-}
cells :: Int -> [Int] -> [Int]
cells 0 xs = xs
cells n xs = cells (n - 1) (boxed : xs)
  where !boxed = n * 5 + 1

{-# NOINLINE total #-}
total :: [Int] -> Int
total = go 0
  where
    go !acc [] = acc
    go acc (x : xs) = go (acc + x) xs
