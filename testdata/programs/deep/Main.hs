{-# LANGUAGE BangPatterns #-}
-- Deep stacks: down to the given depth, work at the bottom, and back.
--
--   recursion   DEPTH return frames of Main.down above Main.bottom
--   thunks      a chain of DEPTH thunks, each with its update frame and the
--               return frame of the addition that needs the next
--
-- Must show: samples at the bottom have DEPTH levels or say how many words they
-- left out; the root (Main.main) is there; the chunks of the stack are followed.
--
-- usage: deep recursion|thunks [DEPTH [ROUNDS]]
module Main (main) where

import Data.Word (Word64)
import GHC.Exts (lazy)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let (mode, sizes) = case args of
        m : s -> (m, map read s)
        [] -> ("recursion", [])
      (depth, rounds) = case sizes of
        [d, r] -> (d, r)
        [d] -> (d, 500)
        _ -> (50000, 500) :: (Int, Int)
  print $ case mode of
    "recursion" -> repeatedly down depth rounds
    "thunks" -> repeatedly chain depth rounds
    _ -> error ("deep: no mode " ++ mode)

repeatedly :: (Int -> Word64 -> Word64) -> Int -> Int -> Word64
repeatedly f depth = go 1
  where
    go !acc 0 = acc
    go acc k = go (f depth acc) (k - 1 :: Int)
{-# NOINLINE repeatedly #-}

{-# NOINLINE down #-}
down :: Int -> Word64 -> Word64
down 0 x = bottom 2000000 x
down n x = 1 + down (n - 1) x

-- Built from the bottom up: the last thunk made is the first to be forced.
-- 'lazy' keeps the strictness analyser from seeing that all will be needed.
{-# NOINLINE chain #-}
chain :: Int -> Word64 -> Word64
chain depth x = build depth (bottom 2000000 x)
  where
    build 0 acc = acc
    build n acc = build (n - 1) (lazy (1 + lazy acc))

{-# NOINLINE bottom #-}
bottom :: Int -> Word64 -> Word64
bottom 0 !x = x
bottom n x = bottom (n - 1) (x * 2862933555777941757 + 3037000493)
