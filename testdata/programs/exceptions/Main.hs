{-# LANGUAGE BangPatterns #-}
-- Handlers on the stack: nested catch frames, masking, exceptions from pure code,
-- and an asynchronous one.
--
-- Must show: catch frames (and the frames that restore the masking state) in the
-- stacks of Main.spin; every walk ends at the root.
--
-- usage: exceptions [NESTING [ROUNDS]]
module Main (main) where

import Control.Concurrent
import Control.Exception
import Control.Monad (foldM)
import Data.Word (Word64)
import System.Environment (getArgs)

newtype Found = Found Word64 deriving (Show)

instance Exception Found

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (nesting, rounds) = case args of
        [n, r] -> (n, r)
        [n] -> (n, 1000)
        _ -> (20, 1000) :: (Int, Int)
  x <- foldM (\acc _ -> nested nesting acc) 1 [1 .. rounds]
  print x
  asynchronous x >>= putStrLn

-- One catch frame a level, and the throw at the bottom unwinds to the last handler
-- that takes it; odd levels run masked.
{-# NOINLINE nested #-}
nested :: Int -> Word64 -> IO Word64
nested 0 !x = throwIO (Found (spin 200000 x))
nested n x
  | odd n = mask $ \restore -> restore (nested (n - 1) x) `catch` again
  | otherwise = nested (n - 1) x `catch` again
  where
    again (Found y)
      | n `rem` 5 == 0 = return $! spin 1000 y
      | otherwise = throwIO (Found (y + 1))

-- A thread that only an exception ends; it has to allocate to be interrupted.
asynchronous :: Word64 -> IO String
asynchronous seed = do
  done <- newEmptyMVar
  begun <- newEmptyMVar
  tid <- forkIO $ (putMVar begun () >> forever' seed)
    `catch` \e -> putMVar done (show (e :: AsyncException))
  takeMVar begun
  killThread tid
  takeMVar done
  where
    forever' x = do
      y <- evaluate (spin 1000 x)
      yield
      forever' y

{-# NOINLINE spin #-}
spin :: Int -> Word64 -> Word64
spin 0 !x = x
spin n x = spin (n - 1) (x * 2862933555777941757 + 3037000493)
