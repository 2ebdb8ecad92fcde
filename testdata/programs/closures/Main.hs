{-# LANGUAGE BangPatterns, MagicHash, UnboxedTuples #-}
-- | Allocates in each turn of its loop, by arithmetic: a constructor of 32 bytes, a thunk of 24
-- that is never evaluated, a function of 16, and an array of 40 bytes, which takes 56 and which
-- the run-time system allocates. With the argument "evaluated", the thunks are evaluated.
module Main (main) where

import Control.Monad (when)
import Data.IORef
import GHC.Exts
import GHC.IO (IO (..))
import System.Environment (getArgs)

data Three = Three !Int !Int !Int

{-# NOINLINE hard #-}
hard :: Int -> Int
hard n = n * 3 + 1

-- The compiler allocates an array itself if it knows the size.
{-# NOINLINE bytes #-}
bytes :: Int -> Int
bytes n = 40 + min 0 n

data Refs = Refs (IORef Three) (IORef Int) (IORef (Int -> Int)) Bool

turn :: Refs -> Int -> IO ()
turn (Refs threes numbers functions evaluated) !i = do
  writeIORef threes $! Three i (i + 1) (i + 2)
  let n = hard (i + 1)
  writeIORef numbers n
  when evaluated $ n `seq` return ()
  writeIORef functions (\x -> hard (x + i))
  case bytes i of I# n# -> IO $ \s -> case newByteArray# n# s of (# s', _ #) -> (# s', () #)
{-# NOINLINE turn #-}

main :: IO ()
main = do
  args <- getArgs
  refs <- Refs <$> newIORef (Three 0 0 0) <*> newIORef 0 <*> newIORef id <*> pure ("evaluated" `elem` args)
  let turns = case args of
        n : _ -> read n
        [] -> 2000000
      loop i = when (i < turns) $ turn refs i >> loop (i + 1 :: Int)
  loop 0
  readIORef (let Refs _ numbers _ _ = refs in numbers) >>= print
