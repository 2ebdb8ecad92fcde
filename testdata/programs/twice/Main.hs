{-# LANGUAGE BangPatterns #-}
-- Two threads that want the same thunk, of which neither knows that the other evaluates it.
--
-- Work is counted in pieces: one that was done before for the same thunk is done again.
--
-- Must show: the share of CPU time that goes into pieces that are done again, as this prints it.
--
-- usage: twice together|apart|private|allocating ROUNDS PIECES +RTS -N2
--   together    both begin at once
--   apart       the second begins when the first has done half of it
--   private     each has a thunk of its own
--   allocating  as together; they pause for collections, and find out
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.List (foldl')
import System.Environment (getArgs)

foreign import ccall unsafe "piece" piece :: Int -> Int -> Int -> Int

foreign import ccall unsafe "done" done :: Int -> IO Int

foreign import ccall unsafe "again" again :: IO Int

foreign import ccall unsafe "all" allPieces :: IO Int

-- | A thunk's value: so many pieces, each of which is counted.
work :: Bool -> Int -> Int -> Int
work allocates thunk = go 0
  where
    go acc 0 = acc
    go !acc n = go (spend allocates (piece thunk n acc)) (n - 1)
{-# NOINLINE work #-}

-- | Some ten microseconds.
spend :: Bool -> Int -> Int
spend True x = foldl' (+) 0 (numbers 500 x)
spend False x = go (20000 :: Int) x
  where
    go 0 y = y
    go k y = go (k - 1) (y * 31 + k)
{-# NOINLINE spend #-}

-- | A list that is built.
numbers :: Int -> Int -> [Int]
numbers 0 _ = []
numbers n x = x : numbers (n - 1) (x + n)
{-# NOINLINE numbers #-}

main :: IO ()
main = do
  [mode, rounds, pieces] <- getArgs
  let n = read pieces :: Int
      thunk i = work (mode == "allocating") i n
  first <- newEmptyMVar
  second <- newEmptyMVar
  ends <- newEmptyMVar
  forM_ [(0, first), (1, second)] $ \(cap, start) -> forkOn cap . forever $ do
    x <- takeMVar start
    _ <- evaluate (x :: Int)
    putMVar ends ()
  forM_ [1 .. read rounds :: Int] $ \i -> do
    let x = thunk (2 * i)
        y = if mode == "private" then thunk (2 * i + 1) else x
    putMVar first x
    when (mode == "apart") (wait (2 * i) (n `div` 2))
    putMVar second y
    replicateM_ 2 (takeMVar ends)
  a <- again
  b <- allPieces
  putStrLn (show a ++ " of " ++ show b ++ " pieces were done again")
  where
    wait i half = do
      d <- done i
      when (d < half) (threadDelay 100 >> wait i half)
