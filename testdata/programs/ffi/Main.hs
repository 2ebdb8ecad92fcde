{-# LANGUAGE BangPatterns #-}
{-# LANGUAGE ForeignFunctionInterface #-}
-- Foreign calls: the time is spent in C that was called unsafely, in C that was
-- called safely, and in Haskell that C called back.
--
-- Must show: c_inner in category foreign; below an unsafe call the frames of
-- Main.unsafely, its caller; during a safe call Main.safely as context only, because
-- the RTS has put the Haskell thread aside; below a call back Main.fromC.
--
-- usage: ffi [ROUNDS [ITERATIONS]]      compile with spin.c
module Main (main) where

import Control.Monad (foldM)
import Data.Word (Word64)
import Foreign.Ptr (FunPtr)
import System.Environment (getArgs)

foreign import ccall unsafe "c_spin_unsafe" cSpinUnsafe :: Word64 -> Word64 -> IO Word64
foreign import ccall safe "c_spin_safe" cSpinSafe :: Word64 -> Word64 -> IO Word64
foreign import ccall safe "c_call_back" cCallBack :: FunPtr (Word64 -> IO Word64) -> Word64 -> IO Word64
foreign import ccall "wrapper" callable :: (Word64 -> IO Word64) -> IO (FunPtr (Word64 -> IO Word64))

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (rounds, n) = case args of
        [r, i] -> (r, i)
        [r] -> (r, 1000000)
        _ -> (1000, 1000000) :: (Word64, Word64)
  f <- callable (fromC n)
  x <- foldM (\acc _ -> unsafely n acc >>= safely n >>= backAndForth f) 1 [1 .. rounds]
  print x

-- Each adds to the result, so that it has a return frame during the call.
{-# NOINLINE unsafely #-}
unsafely :: Word64 -> Word64 -> IO Word64
unsafely n x = (+ 1) <$> cSpinUnsafe x n

{-# NOINLINE safely #-}
safely :: Word64 -> Word64 -> IO Word64
safely n x = (+ 2) <$> cSpinSafe x n

{-# NOINLINE backAndForth #-}
backAndForth :: FunPtr (Word64 -> IO Word64) -> Word64 -> IO Word64
backAndForth f x = (+ 3) <$> cCallBack f x

{-# NOINLINE fromC #-}
fromC :: Word64 -> Word64 -> IO Word64
fromC n x = return $! spin (fromIntegral n) x

{-# NOINLINE spin #-}
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
