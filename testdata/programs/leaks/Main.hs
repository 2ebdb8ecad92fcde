-- | Leaks memory as programs do, each in its own way:
--
-- * foldl: a mean by a lazy pair, whose sum and count are never asked for
-- * modify: a counter by modifyIORef, that nobody reads
-- * map: counts by word in a map that is strict in its keys only
-- * caf: a table at the top level that is walked once and kept
-- * parser: fields that are slices of the whole input, of which they are a small part
-- * cache: a cache of results from which nothing is ever taken out
-- * stack: a thread that calls itself before its last action
--
-- Then it waits for a line.
--
-- Must show: what grows, with the line that wrote it, and who keeps it alive.
--
-- usage: leaks KIND
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import qualified Data.ByteString.Char8 as B
import Data.IORef
import Data.List (foldl')
import qualified Data.Map.Lazy as L
import qualified Data.Map.Strict as M
import GHC.Conc (labelThread)
import System.Environment (getArgs)
import System.IO

-- | The textbook's: foldl' evaluates the pair, and not what is in it.
mean :: IORef (Int, Int) -> [Int] -> IO ()
mean r xs = do
  start <- readIORef r
  let both = foldl' (\(s, n) x -> (s + x, n + 1)) start xs
  _ <- evaluate both
  writeIORef r both

count :: IORef Int -> Int -> IO ()
count counter n = replicateM_ n (modifyIORef counter (+ 1))

tally :: IORef (L.Map Int Int) -> Int -> IO ()
tally counts n = forM_ [1 .. n] $ \i -> do
  m <- readIORef counts
  let m' = L.insertWith (+) (i `mod` 1000) 1 m
  _ <- evaluate m'
  writeIORef counts m'
{-# NOINLINE tally #-}

squares :: [Int]
squares = map (\n -> n * n) [1 ..]
{-# NOINLINE squares #-}

-- | The first field of each line.
firstFields :: B.ByteString -> [B.ByteString]
firstFields = map (B.takeWhile (/= ',')) . B.lines

request :: IORef (M.Map Int String) -> Int -> IO ()
request cache i = do
  m <- readIORef cache
  when (M.notMember i m) $ writeIORef cache $! M.insert i (answer i) m
  where
    answer n = let s = "answer to " ++ show n in length s `seq` s

-- | Waits for messages, and forgets that what is after a call has to be remembered during it.
serve :: Chan Int -> MVar () -> Int -> IO Int
serve messages done n = do
  m <- readChan messages
  if m == 0 then putMVar done () >> readChan messages else do
    later <- serve messages done (n + m)
    return $! later + 1
{-# NOINLINE serve #-}

main :: IO ()
main = do
  [kind] <- getArgs
  hSetBuffering stdout LineBuffering
  keep <- case kind of
    "foldl" -> do
      r <- newIORef (0, 0)
      forM_ [1 .. 20 :: Int] $ \i -> mean r [i .. i + 20000]
      return (readIORef r >>= print)
    "modify" -> do
      r <- newIORef 0
      count r 500000
      return (readIORef r >>= print)
    "map" -> do
      r <- newIORef L.empty
      tally r 400000
      return (readIORef r >>= print . L.foldl' (+) 0)
    "caf" -> do
      print (squares !! 300000)
      return (print (take 3 squares))
    "parser" -> do
      fields <- forM [1 .. 200 :: Int] $ \i -> do
        let text = B.replicate 100000 (toEnum (97 + i `mod` 26))
        input <- evaluate (B.pack "id" <> B.pack (show i) <> B.pack "," <> text <> B.pack "\n")
        let f = firstFields input
        _ <- evaluate (sum (map B.length f))
        return f
      return (print (length (concat fields)))
    "cache" -> do
      r <- newIORef M.empty
      forM_ [1 .. 30000] (request r)
      return (readIORef r >>= print . M.size)
    "stack" -> do
      messages <- newChan
      done <- newEmptyMVar
      t <- forkIO (serve messages done 0 >>= print)
      labelThread t "serve"
      forM_ [1 .. 2000000] (writeChan messages)
      writeChan messages 0
      takeMVar done
      return (writeChan messages 1)
    _ -> fail ("there is no leak called " ++ kind)
  putStrLn "ready"
  _ <- getLine
  keep
