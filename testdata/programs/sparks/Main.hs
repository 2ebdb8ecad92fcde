-- Sparks of every fate: converted, fizzled, overflowed, dud and collected.
--
-- Must show: the counters of a log are those that +RTS -s prints.
--
-- usage: sparks N +RTS -N2
module Main (main) where

import Control.Exception (evaluate)
import Control.Monad
import GHC.Conc (par, pseq)
import System.Environment (getArgs)
import System.Mem (performGC)

work :: Int -> Int
work n = go (20000 + n `mod` 7) 0
  where
    go :: Int -> Int -> Int
    go 0 acc = acc
    go k acc = go (k - 1) (acc * 31 + k)
{-# NOINLINE work #-}

main :: IO ()
main = do
  [n] <- map read <$> getArgs
  forM_ [1 .. 20 :: Int] $ \turn -> do
    -- Some are converted, and some evaluated by the sum first.
    let xs = map (work . (+ turn)) [1 .. n `div` 20]
    _ <- evaluate (foldr (\x r -> x `par` r) () xs `pseq` sum xs)
    -- Duds: they are values.
    let y = work turn
    _ <- evaluate (y `pseq` foldr (\_ r -> y `par` r) () [1 .. 10 :: Int])
    performGC
  -- More than a pool has room for, of which nothing is kept.
  _ <- evaluate (foldr (\i r -> work i `par` r) () [1 .. 20000 :: Int])
  performGC
  putStrLn "done"
