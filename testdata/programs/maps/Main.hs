{-# LANGUAGE BangPatterns #-}
-- Data.Map at work: its balancing functions take more arguments than there are
-- registers, so their last ones are on the stack when they are entered.
--
-- Must show: samples in Data.Map's code, which has no source notes in the
-- distribution's libraries; the walk ends at the root although the word at Sp is an
-- argument there.
--
-- usage: maps [KEYS [ROUNDS]]
module Main (main) where

import qualified Data.List as List
import qualified Data.Map.Strict as M
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (keys, rounds) = case args of
        [k, r] -> (k, r)
        [k] -> (k, 10)
        _ -> (200000, 10) :: (Int, Int)
  print (List.foldl' (\acc r -> acc + churn keys r) 0 [1 .. rounds])

{-# NOINLINE churn #-}
churn :: Int -> Int -> Int
churn keys r = M.foldl' (+) 0 (thin keys r (grow keys r))

{-# NOINLINE grow #-}
grow :: Int -> Int -> M.Map (Int, Int) Int
grow keys r = List.foldl' add M.empty [1 .. keys]
  where
    add m k = M.insertWith (+) (scatter (k * r), k) k m

{-# NOINLINE thin #-}
thin :: Int -> Int -> M.Map (Int, Int) Int -> M.Map (Int, Int) Int
thin keys r m = List.foldl' drop3 m [3, 6 .. keys]
  where
    drop3 acc k = M.delete (scatter (k * r), k) acc

scatter :: Int -> Int
scatter k = (k * 2654435761) `mod` 1048573
