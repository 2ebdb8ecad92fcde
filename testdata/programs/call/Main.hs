{-# LANGUAGE ForeignFunctionInterface #-}
-- A single safe call of C code that takes nearly all of the time, so that hardly a sample is taken in Haskell code.
--
-- Must show: c_long with Main.caller as context, also where nothing but CPU time is sampled.
--
-- usage: call main|forked ITERATIONS     compile with call.c
module Main (main, caller) where

import Control.Concurrent
import Data.Word (Word64)
import System.Environment (getArgs)

foreign import ccall safe "c_long" cLong :: Word64 -> Word64 -> IO Word64

main :: IO ()
main = do
  args <- getArgs
  case args of
    ["main", n] -> caller (read n) >>= print
    ["forked", n] -> do
      done <- newEmptyMVar
      _ <- forkIO (caller (read n) >>= putMVar done)
      takeMVar done >>= print
    _ -> error "usage: call main|forked ITERATIONS"

-- Adds to the result, so that it has a return frame during the call.
{-# NOINLINE caller #-}
caller :: Word64 -> IO Word64
caller n = (+ 1) <$> cLong 1 n
