-- | A short program that makes the RTS post most kinds of events.
{-# LANGUAGE MagicHash, UnboxedTuples #-}
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM
import Control.Monad
import Debug.Trace
import GHC.Conc (labelThread, par, pseq)
import GHC.Exts (traceBinaryEvent#)
import GHC.IO (IO (..))
import System.Mem (performMajorGC)

main :: IO ()
main = do
  myThreadId >>= \t -> labelThread t "main λ"
  traceEventIO "begin"
  traceMarkerIO "phase one"
  done <- newEmptyMVar
  total <- newTVarIO (0 :: Int)
  forM_ [1 .. 3 :: Int] $ \i -> forkIO $ do
    self <- myThreadId
    labelThread self ("worker " ++ show i)
    atomically $ modifyTVar' total (+ length (show (product [1 .. fromIntegral (100 * i) :: Integer])))
    yield
    putMVar done ()
  replicateM_ 3 (takeMVar done)
  performMajorGC
  atomically (readTVar total) >>= print
  let halves = map (\n -> product [n .. n + 200 :: Integer]) [1 .. 4]
  print (length (show (foldr (\h rest -> h `par` (rest `pseq` (h + rest))) 0 halves)))
  IO (\s -> (# traceBinaryEvent# "\0\1binary\xff"# 9# s, () #))
  traceMarkerIO "phase two"
