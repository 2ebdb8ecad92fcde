{-# LANGUAGE MagicHash, UnboxedTuples #-}
-- | Keeps data alive in ways of which the sizes are known by arithmetic: a CAF that is a list of N
-- cells, a map of N keys in a global variable, an array of N elements that only a thread refers to, and a
-- list of N cells that two global variables share, each of which has one of its own besides, and N tokens to which only a
-- stable pointer leads. It collects its heap again and again until its standard input has something.
--
-- Must show: the list's CAF retains 40 N bytes, the map's 64 N and a few, the thread 8 N and a few, each
-- of the two variables 40 N, and what they share none of them; the stable pointer 24 N.
--
-- usage: owners N
module Main (main) where

import Control.Concurrent
import Data.IORef
import qualified Data.Map.Strict as M
import GHC.Conc (labelThread)
import GHC.Exts
import Foreign.StablePtr (deRefStablePtr, newStablePtr)
import GHC.IO (IO (..), unsafePerformIO)
import System.Environment (getArgs)
import System.IO
import System.Mem (performMajorGC)

-- Numbers from here on are no closures of the run-time system's own.
base :: Int
base = 100000000

size :: IORef Int
size = unsafePerformIO (newIORef 0)
{-# NOINLINE size #-}

cafList :: [Int]
cafList = unsafePerformIO (fmap (cells 1) (readIORef size))
{-# NOINLINE cafList #-}

{-# NOINLINE cells #-}
cells :: Int -> Int -> [Int]
cells seed n = go n []
  where
    go 0 acc = acc
    go k acc = let x = seed * base + k in x `seq` go (k - 1) (x : acc)

globalMap :: IORef (M.Map Int ())
globalMap = unsafePerformIO (newIORef M.empty)
{-# NOINLINE globalMap #-}

ownerA, ownerB :: IORef ([Int], [Int])
ownerA = unsafePerformIO (newIORef ([], []))
{-# NOINLINE ownerA #-}
ownerB = unsafePerformIO (newIORef ([], []))
{-# NOINLINE ownerB #-}

data Token = Token !Int Token | NoToken

{-# NOINLINE tokens #-}
tokens :: Int -> Token
tokens n = go n NoToken
  where
    go 0 t = t
    go k t = let t' = Token (base + k) t in t' `seq` go (k - 1) t'

{-# NOINLINE total #-}
total :: Token -> Int
total (Token _ t) = 1 + total t
total NoToken = 0

data Boxed = Boxed (MutableArray# RealWorld Int)

boxed :: Int -> IO Boxed
boxed (I# n) = IO $ \s -> case newArray# n 7 s of (# s', a #) -> (# s', Boxed a #)

{-# NOINLINE hold #-}
hold :: MVar () -> Int -> IO Int
hold gate n = do
  Boxed a <- boxed n
  takeMVar gate
  IO $ \s -> case readArray# a 0# s of (# s', x #) -> (# s', x #)

-- What is made here is referred to by global variables alone, once it is made.
{-# NOINLINE make #-}
make :: Int -> IO ()
make n = do
  writeIORef size n
  writeIORef globalMap $! M.fromDistinctAscList [(base + i, ()) | i <- [1 .. n]]
  let shared = cells 2 n
      a = cells 3 n
      b = cells 4 n
  length shared `seq` length a `seq` length b `seq` return ()
  writeIORef ownerA (a, shared)
  writeIORef ownerB (b, shared)
  print (length cafList)

-- Keeps the global variables alive until it runs.
{-# NOINLINE count #-}
count :: IO Int
count = do
  (x, y) <- readIORef ownerA
  (v, w) <- readIORef ownerB
  m <- readIORef globalMap
  return $! length x + length y + length v + length w + M.size m + length cafList

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  [arg] <- getArgs
  let n = read arg
  make n
  held <- newStablePtr $! tokens n
  gate <- newEmptyMVar
  done <- newEmptyMVar
  t <- forkIO (hold gate n >>= putMVar done)
  labelThread t "holder"
  end <- newEmptyMVar
  _ <- forkIO (getLine >> putMVar end ())
  untilFull end
  putMVar gate ()
  takeMVar done >>= print
  count >>= print
  deRefStablePtr held >>= print . total

untilFull :: MVar () -> IO ()
untilFull m = do
  performMajorGC
  threadDelay 1000
  full <- tryTakeMVar m
  maybe (untilFull m) return full
