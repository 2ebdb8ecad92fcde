{-# LANGUAGE MagicHash, UnboxedTuples #-}
-- | Has its memory in one place of MB megabytes:
--
-- * pinned: byte arrays of 2000 bytes that are not moved, of which only the first in each megabyte is kept
-- * large: the same with byte arrays of 8000 bytes
-- * malloc: memory of C's malloc, in pieces of 64 KB
-- * stack: a thread whose stack is so large
-- * compact: a compact region
-- * live: a list
-- * freed: a list that is given up
-- * fresh: a list that is made when it has collected its heap
-- * bare: none of these
--
-- Then it collects its heap again and again (slow: every 8 s; rest: not at all), says so, and ends at the next line. With +RTS -T it says what the
-- run-time system counts of its heap: bytes alive, bytes of their blocks that are not used, bytes of the operating
-- system.
--
-- Must show: all but a few megabytes in the part that KIND names; pinned and large as free blocks of
-- megablocks, one held by each array that is kept.
--
-- usage: footprint KIND MB [rest|slow]
module Main (main) where

import Control.Concurrent
import Control.Exception (evaluate)
import Control.Monad
import Data.IORef
import Foreign (fillBytes, mallocBytes)
import GHC.Compact (compact, getCompact)
import GHC.Exts
import GHC.IO (IO (..))
import GHC.Stats
import System.Environment (getArgs)
import System.IO
import System.Mem (performMajorGC)

data Bytes = Bytes (MutableByteArray# RealWorld)

pinned :: Int -> IO Bytes
pinned (I# n) = IO $ \s -> case newPinnedByteArray# n s of
  (# s', a #) -> case setByteArray# a 0# n 1# s' of s'' -> (# s'', Bytes a #)

-- | Keeps the first of those in each megabyte.
sparse :: Int -> Int -> IO [Bytes]
sparse bytes mb = do
  let each = if bytes < 4096 then 252 * (4096 `div` bytes) else 252 `div` ((bytes + 4095) `div` 4096)
  all' <- newIORef []
  replicateM_ (mb * each) (pinned bytes >>= \a -> modifyIORef' all' (a :))
  performMajorGC
  kept <- every each <$> readIORef all'
  _ <- evaluate (length kept)
  writeIORef all' kept
  readIORef all'
  where
    every n (x : xs) = x : every n (drop (n - 1) xs)
    every _ [] = []

-- | A stack frame of two words for each number, with its return address.
deep :: IO () -> Int -> IO Int
deep bottom 0 = bottom >> return 0
deep bottom n = do
  x <- deep bottom (n - 1)
  return $! x + n
{-# NOINLINE deep #-}

-- | What is kept until the end.
data Kept = Arrays [Bytes] | Memory [Ptr ()] | List [Int] | Stack (MVar ()) | Nothing'

size :: Kept -> Int
size k = case k of
  Arrays a -> length a
  Memory p -> length p
  List l -> length l
  _ -> 0

make :: String -> Int -> IO Kept
make kind mb = case kind of
  "pinned" -> Arrays <$> sparse 2000 mb
  "large" -> Arrays <$> sparse 8000 mb
  "malloc" -> fmap Memory . replicateM (16 * mb) $ do
    p <- mallocBytes 65536
    p <$ fillBytes p 1 65536
  "stack" -> do
    there <- newEmptyMVar
    leave <- newEmptyMVar
    _ <- forkIO (deep (putMVar there () >> takeMVar leave) (mb * 1048576 `div` 16) >>= print)
    takeMVar there
    return (Stack leave)
  "compact" -> do
    c <- compact [1 .. mb * 1048576 `div` 40]
    return (List (getCompact c))
  "live" -> list
  "freed" -> do
    l <- list
    _ <- evaluate (size l)
    performMajorGC
    _ <- evaluate (size l)
    return Nothing'
  _ -> return Nothing'
  where
    list = do
      let l = [1 .. mb * 1048576 `div` 40] :: [Int]
      _ <- evaluate (length l)
      return (List l)

main :: IO ()
main = do
  args <- getArgs
  let (kind, mb) = case args of
        k : n : _ -> (k, read n)
        _ -> ("bare", 0)
  hSetBuffering stdout LineBuffering
  kept <- make kind mb
  _ <- evaluate (size kept)
  performMajorGC
  fresh <- if kind == "fresh" then make "live" mb else return Nothing'
  _ <- evaluate (size fresh)
  enabled <- getRTSStatsEnabled
  when enabled $ do
    s <- gc <$> getRTSStats
    putStrLn (unwords ["live", show (gcdetails_live_bytes s), "slop", show (gcdetails_slop_bytes s), "system", show (gcdetails_mem_in_use_bytes s)])
  done <- newEmptyMVar
  _ <- forkIO (getLine >> putMVar done ())
  putStrLn "ready"
  let wait = if "rest" `elem` args then takeMVar done else do
        performMajorGC
        stop <- tryTakeMVar done
        case stop of
          Just () -> return ()
          Nothing -> threadDelay (if "slow" `elem` args then 8000000 else 20000) >> wait
  wait
  case kept of
    Stack leave -> putMVar leave ()
    _ -> print (size kept + size fresh)
