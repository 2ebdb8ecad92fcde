{-# LANGUAGE BangPatterns #-}
-- A little of all that a capture sees, in a run so short that its log can be kept.
--
-- Must show: nearly all CPU time in Main.spin, below Main.worker; as many bytes as +RTS -s counts, most of them of Main.cells; its
-- collections; the threads "worker 1" to "worker 3"; in the last census as many Main.Cell as were asked for.
--
-- usage: seen [CELLS ROUNDS SPINS]
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import GHC.Conc (labelThread)
import System.Environment (getArgs)
import System.Mem (performMajorGC)

data Cell = Cell !Int Cell | End

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (n, rounds, spins) = case args of
        [c, r, s] -> (c, r, s)
        _ -> (2000, 20, 3700000) :: (Int, Int, Int)
  kept <- evaluate (cells n 0)
  putStrLn "kept"
  done <- forM [1 .. 3 :: Int] $ \i -> do
    out <- newEmptyMVar
    t <- forkIO (worker n rounds spins out)
    labelThread t ("worker " ++ show i)
    return out
  sums <- mapM takeMVar done
  -- One of these has a census, also where the program's end is too near to the last.
  after <- forM [1 .. 9 :: Int] $ \_ -> do
    performMajorGC
    out <- newEmptyMVar
    worker 0 1 spins out
    takeMVar out
  print (sum sums + sum after + total kept)

{-# NOINLINE worker #-}
worker :: Int -> Int -> Int -> MVar Int -> IO ()
worker n rounds spins out = do
  xs <- forM [1 .. rounds] $ \i -> evaluate (spin spins i + total (cells n i))
  putMVar out $! sum xs

{-# NOINLINE cells #-}
cells :: Int -> Int -> Cell
cells n first = go n End
  where
    go 0 c = c
    go k !c = go (k - 1) (Cell (first + k) c)

{-# NOINLINE total #-}
total :: Cell -> Int
total = go 0
  where
    go !acc End = acc
    go acc (Cell k c) = go (acc + k) c

{-# NOINLINE spin #-}
spin :: Int -> Int -> Int
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
