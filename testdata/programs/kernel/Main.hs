{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE ForeignFunctionInterface #-}
-- The kernel at work for Haskell code: pages that are touched for the first time, from
-- Haskell itself, and a system call in a loop.
--
-- Must show: with --kernel, kernel frames on top of Main.touch and, through the C
-- library, of Main.ask; without, the same callers in category kernel.
--
-- usage: kernel [ROUNDS]
module Main (main) where

import Control.Monad (replicateM_, when)
import Data.Word (Word8)
import Foreign.C.Types (CInt (..), CLong (..), CSize (..))
import Foreign.Ptr (Ptr, nullPtr, plusPtr)
import Foreign.Storable (pokeByteOff)
import System.Environment (getArgs)

foreign import ccall unsafe "mmap" cMmap :: Ptr () -> CSize -> CInt -> CInt -> CInt -> CLong -> IO (Ptr ())
foreign import ccall unsafe "munmap" cMunmap :: Ptr () -> CSize -> IO CInt
foreign import ccall unsafe "getppid" cGetppid :: IO CInt

main :: IO ()
main = do
  args <- getArgs
  let rounds = case args of
        [r] -> read r
        _ -> 20
  replicateM_ rounds $ do
    p <- cMmap nullPtr (fromIntegral size) 3 0x22 (-1) 0
    when (p == nullPtr `plusPtr` (-1)) $ fail "mmap failed"
    touch p 0
    _ <- cMunmap p (fromIntegral size)
    ask 200000 0 >>= print

size :: Int
size = 64 * 1024 * 1024

-- Writes a byte to each page.
touch :: Ptr () -> Int -> IO ()
touch p = go
  where
    go !at
      | at >= size = return ()
      | otherwise = pokeByteOff p at (1 :: Word8) >> go (at + 4096)
{-# NOINLINE touch #-}

ask :: Int -> CInt -> IO CInt
ask 0 !acc = return acc
ask n acc = cGetppid >>= \x -> ask (n - 1) (max acc x)
{-# NOINLINE ask #-}
