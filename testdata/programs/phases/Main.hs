{-# LANGUAGE BangPatterns #-}
-- Two functions that run one after the other, as long as the caller says.
--
-- Must show: Main.first and Main.second with the CPU times that the program prints, whatever
-- rates they were sampled at.
--
-- usage: phases < LINES      a line is "first N" or "second N", N millions of iterations, or
--                            "retain N", which makes a list of N thousand elements and goes through it
--                            twice; for each its CPU time in ns is printed when it is through
module Main where

import Data.Word (Word64)
import System.CPUTime (getCPUTime)
import System.IO

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  loop 1

loop :: Word64 -> IO ()
loop !acc = do
  end <- isEOF
  if end then print acc else do
    asked <- words <$> getLine
    before <- getCPUTime
    let !acc' = case asked of
          ["first", n] -> first (read n * 1000000) acc
          ["second", n] -> second (read n * 1000000) acc
          ["retain", n] -> retain (read n * 1000) acc
          _ -> error "a line is \"first N\", \"second N\" or \"retain N\""
    after <- getCPUTime
    putStrLn (unwords (take 1 asked) ++ " " ++ show ((after - before) `div` 1000))
    loop acc'

{-# NOINLINE first #-}
first :: Int -> Word64 -> Word64
first 0 !x = x
first n x = first (n - 1) (x * 2862933555777941757 + 3037000493)

{-# NOINLINE second #-}
second :: Int -> Word64 -> Word64
second 0 !x = x
second n x = second (n - 1) (x * 3202034522624059733 + 4354685564)

{-# NOINLINE retain #-}
retain :: Int -> Word64 -> Word64
retain n !x = sum list + fromIntegral (length list)
  where
    list = take n (iterate (\y -> y * 6364136223846793005 + 1) x)
