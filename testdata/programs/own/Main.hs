{-# LANGUAGE BangPatterns #-}
-- What the run-time system allocates for itself, beside cells of the program's.
--
--   stack    a recursion of DEPTH frames, and a list, in each round: the stack grows by chunks
--   threads  a thread in each round
--
-- Must show: the chunks, or the threads with their stacks, by an element of their own, with
-- the bytes that their number says.
--
-- usage: own stack DEPTH ROUNDS | own threads ROUNDS
module Main (main) where

import Control.Concurrent
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  case args of
    ["stack", depth, rounds] -> print (stack (read depth) (read rounds) 0)
    ["threads", rounds] -> do
      done <- newEmptyMVar
      threads done (read rounds) 0 >>= print
    _ -> error "usage: own stack DEPTH ROUNDS | own threads ROUNDS"

stack :: Int -> Int -> Int -> Int
stack _ 0 !acc = acc
stack depth k acc = stack depth (k - 1) (acc + down depth k + total (cells 20000 [k]))
{-# NOINLINE stack #-}

down :: Int -> Int -> Int
down 0 !x = x
down n x = 1 + down (n - 1) x
{-# NOINLINE down #-}

threads :: MVar () -> Int -> Int -> IO Int
threads _ 0 !acc = return acc
threads done k acc = do
  _ <- forkIO (putMVar done ())
  takeMVar done
  threads done (k - 1) (acc + total (cells 20 [k]))
{-# NOINLINE threads #-}

cells :: Int -> [Int] -> [Int]
cells 0 xs = xs
cells n xs = cells (n - 1) (boxed : xs)
  where !boxed = n * 5 + 1
{-# NOINLINE cells #-}

total :: [Int] -> Int
total = go 0
  where
    go !acc [] = acc
    go acc (x : xs) = go (acc + x) xs
