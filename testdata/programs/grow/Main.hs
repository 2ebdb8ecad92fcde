-- | Leaks at a steady rate: in each of ROUNDS rounds, a map of which nothing is ever forgotten gains STEP
-- entries, each a node of six words, a key of two and a value of three; beside it a list of the same
-- length as the last round's alone is kept, which does not grow. After each round it collects its heap,
-- and waits for MICROSECONDS.
--
-- Must show: the map's bands grow by STEP times 48, 16 and 24 bytes a round; the list's do not.
--
-- usage: grow [STEP [ROUNDS [MICROSECONDS]]]
module Main (main) where

import Control.Concurrent (threadDelay)
import Control.Exception (evaluate)
import Control.Monad (forM_)
import Data.IORef
import qualified Data.Map.Strict as M
import System.Environment (getArgs)
import System.Mem (performMajorGC)

newtype Key = Key Int deriving (Eq, Ord)

data Session = Session !Int !Int

data Scratch = Scratch !Int Scratch | Empty

{-# NOINLINE scratch #-}
scratch :: Int -> Int -> Scratch
scratch _ 0 = Empty
scratch s n = let rest = scratch s (n - 1) in rest `seq` Scratch (s + n) rest

{-# NOINLINE remember #-}
remember :: Int -> Int -> M.Map Key Session -> M.Map Key Session
remember from step m = foldr (\i -> M.insert (Key i) (Session i (i * i))) m [from + 1 .. from + step]

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (step, rounds, wait) = case args of
        [] -> (1000, 100, 10000)
        [s] -> (s, 100, 10000)
        [s, r] -> (s, r, 10000)
        (s : r : w : _) -> (s, r, w) :: (Int, Int, Int)
  cache <- newIORef M.empty
  last' <- newIORef Empty
  forM_ [1 .. rounds] $ \r -> do
    m <- readIORef cache
    writeIORef cache $! remember (1000 + (r - 1) * step) step m
    evaluate (scratch r step) >>= writeIORef last'
    performMajorGC
    threadDelay wait
  m <- readIORef cache
  Scratch s _ <- readIORef last'
  print (M.size m, s)
