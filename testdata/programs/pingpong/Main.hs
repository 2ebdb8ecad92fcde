-- Two bound threads that hand a token to each other: the operating system switches
-- threads at every turn, tens of thousands of times a second.
--
-- Must show: what a capture costs at switches of threads is what it says it costs.
--
-- usage: pingpong [TURNS]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Monad (replicateM_)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let turns = case args of
        [n] -> read n
        _ -> 20000 :: Int
  ping <- newEmptyMVar
  pong <- newEmptyMVar
  done <- newEmptyMVar
  _ <- forkOS (replicateM_ turns (takeMVar ping >>= putMVar pong . (+ 1)) >> putMVar done ())
  _ <- forkOS (replicateM_ turns (takeMVar pong >>= putMVar ping) >> putMVar done ())
  putMVar ping (0 :: Int)
  takeMVar done
  -- The last token waits in its place.
  takeMVar ping >>= print
