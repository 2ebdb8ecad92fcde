{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE ForeignFunctionInterface #-}
{-# LANGUAGE ScopedTypeVariables #-}
-- Every shape a Haskell stack can have, one a mode, small enough to be recorded
-- whole: what the snapshots of the stack walker's tests are taken of.
--
-- Must show: what the comment above each mode's function says, below the stack
-- of Main.bottom, which all but a few modes end in.
--
-- usage: situations MODE [DEPTH]      compile with calls.c
module Main
  ( main, bottom, down, ping, pong, chain, many, applied, higher, unsafely, safely, collected
  , allocating, nested, masked, transaction, attempt, impure, constant, inner
  ) where -- exported, so that every release of GHC gives them symbols

import Control.Exception
import Data.IORef
import Data.Word (Word64)
import GHC.Conc
import GHC.Exts (lazy)
import System.Environment (getArgs)
import System.IO.Unsafe (unsafePerformIO)
import System.Mem (performMajorGC)

foreign import ccall unsafe "c_unsafe" cUnsafe :: Word64 -> IO Word64
foreign import ccall safe "c_safe" cSafe :: Word64 -> IO Word64

main :: IO ()
main = do
  args <- getArgs
  let (mode, depth) = case args of
        [m, d] -> (m, read d)
        [m] -> (m, 20)
        _ -> ("recursion", 20) :: (String, Int)
  x <- case mode of
    "recursion" -> evaluate (down depth 1)
    "mutual" -> evaluate (ping depth 1)
    "thunks" -> evaluate (chain depth 1)
    "arguments" -> evaluate (many depth 1 2 3 4 5 6 7 8 9 10)
    "apply" -> evaluate (applied depth higher)
    "unsafe" -> (+ 1) <$> unsafely depth
    "safe" -> (+ 1) <$> safely depth
    "collect" -> collected depth
    "allocate" -> evaluate (allocating depth)
    "catch" -> nested depth 1
    "masked" -> masked depth 1
    "stm" -> transaction depth
    "unsafePerformIO" -> evaluate (impure depth)
    "caf" -> evaluate constant
    _ -> error ("situations: no mode " ++ mode)
  print x

-- Where most modes spend their time: a leaf that keeps nothing on the stack.
{-# NOINLINE bottom #-}
bottom :: Int -> Word64 -> Word64
bottom 0 !x = x
bottom n x = bottom (n - 1) (x * 2862933555777941757 + 3037000493)

-- DEPTH return frames of the same continuation.
{-# NOINLINE down #-}
down :: Int -> Word64 -> Word64
down 0 x = bottom 20 x
down n x = 1 + down (n - 1) x

-- A cycle of two frames, of different size.
{-# NOINLINE ping #-}
ping :: Int -> Word64 -> Word64
ping 0 x = bottom 20 x
ping n x = 1 + pong (n - 1) x

{-# NOINLINE pong #-}
pong :: Int -> Word64 -> Word64
pong 0 x = bottom 20 x
pong n x = fromIntegral n * ping (n - 1) (x + 1) + x

-- DEPTH thunks, each with its update frame and the return frame of the addition.
{-# NOINLINE chain #-}
chain :: Int -> Word64 -> Word64
chain depth x = build depth (bottom 20 x)
  where
    build 0 acc = acc
    build n acc = build (n - 1) (lazy (1 + lazy acc))

-- More arguments than there are registers: the rest is on top of the stack.
{-# NOINLINE many #-}
many :: Int -> Word64 -> Word64 -> Word64 -> Word64 -> Word64 -> Word64 -> Word64 -> Word64 -> Word64 -> Word64 -> Word64
many 0 !a !b !c !d !e !f !g !h !i !j = bottom 20 (a + b + c + d + e + f + g + h + i + j)
many n a b c d e f g h i j = a + many (n - 1) b c d e f g h i j (a + 1)

-- Unknown calls: the frames of stg_ap_*.
{-# NOINLINE applied #-}
applied :: Int -> (Int -> Word64 -> Word64 -> Word64) -> Word64
applied 0 f = f 1 2 3
applied n f = 1 + applied (n - 1) (lazy (\a -> lazy (f a)))

{-# NOINLINE higher #-}
higher :: Int -> Word64 -> Word64 -> Word64
higher n x y = bottom (20 * n) (x + y)

-- C that was called unsafely, with a frame of C between it and Haskell.
{-# NOINLINE unsafely #-}
unsafely :: Int -> IO Word64
unsafely 0 = (+ 1) <$> cUnsafe 20
unsafely n = (+ 2) <$> unsafely (n - 1)

-- C that was called safely: the Haskell thread waits.
{-# NOINLINE safely #-}
safely :: Int -> IO Word64
safely 0 = (+ 1) <$> cSafe 20
safely n = (+ 2) <$> safely (n - 1)

-- A collection that the program asks for, by a safe call.
{-# NOINLINE collected #-}
collected :: Int -> IO Word64
collected 0 = performMajorGC >> return 1
collected n = (+ 2) <$> collected (n - 1)

-- A collection because the nursery is full: the thread has left its code.
{-# NOINLINE allocating #-}
allocating :: Int -> Word64
allocating 0 = fromIntegral (length (numbers 300000))
allocating n = 1 + allocating (n - 1)

{-# NOINLINE numbers #-}
numbers :: Int -> [Int]
numbers 0 = []
numbers n = n : numbers (n - 1)

-- Catch frames.
{-# NOINLINE nested #-}
nested :: Int -> Word64 -> IO Word64
nested 0 x = return $! bottom 20 x
nested n x = ((+ 1) <$> nested (n - 1) x) `catch` \(e :: ArithException) -> throwIO e

-- Catch frames and those that restore the masking state.
{-# NOINLINE masked #-}
masked :: Int -> Word64 -> IO Word64
masked 0 x = return $! bottom 20 x
masked n x = mask $ \restore ->
  restore ((+ 1) <$> masked (n - 1) x) `catch` \(e :: ArithException) -> throwIO e

-- atomically, orElse and catchSTM.
{-# NOINLINE transaction #-}
transaction :: Int -> IO Word64
transaction depth = do
  v <- newTVarIO (fromIntegral depth)
  atomically (attempt v depth)

{-# NOINLINE attempt #-}
attempt :: TVar Word64 -> Int -> STM Word64
attempt v 0 = do
  x <- readTVar v
  let !y = bottom 20 x
  writeTVar v y
  return y
attempt v n
  | even n = ((+ 1) <$> attempt v (n - 1)) `orElse` return 0
  | otherwise = ((+ 1) <$> attempt v (n - 1)) `catchSTM` \(e :: ArithException) -> throwSTM e

-- unsafePerformIO, with noDuplicate's frames.
{-# NOINLINE impure #-}
impure :: Int -> Word64
impure 0 = bottom 20 1
impure n = 1 + unsafePerformIO (do
  r <- newIORef n
  m <- readIORef r
  return $! impure (m - 1))

-- A CAF under evaluation, forced by another.
{-# NOINLINE constant #-}
constant :: Word64
constant = 1 + inner

{-# NOINLINE inner #-}
inner :: Word64
inner = 2 + bottom 20 (fromIntegral (length (show (lazy (7 :: Int)))))
