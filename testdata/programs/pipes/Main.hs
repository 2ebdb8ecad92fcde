{-# LANGUAGE CApiFFI #-}
-- Two OS threads that hand a byte to each other by pipes, as often as they can, and a third that sleeps meanwhile for 20 ms at a time.
-- All wait in foreign calls.
--
-- Must show: off the CPU, each thread has as much as it was by the kernel's count of its time; where --max-overhead bounds that, some as not watched.
--
-- Output: for each thread a line `NAME ID wall W cpu C delay D`: its thread id, and in ns how long it took, what CPU time the kernel has counted, and how
-- long it waited for a CPU.
--
-- usage: pipes [MILLISECONDS]      link with -threaded
module Main (main) where

import Control.Concurrent
import Control.Monad (replicateM, replicateM_, unless)
import Foreign
import Foreign.C.Types
import GHC.Clock (getMonotonicTimeNSec)
import System.Environment (getArgs)

foreign import ccall safe "read" c_read :: CInt -> Ptr Word8 -> CSize -> IO Int64
foreign import ccall safe "write" c_write :: CInt -> Ptr Word8 -> CSize -> IO Int64
foreign import capi unsafe "unistd.h pipe" c_pipe :: Ptr CInt -> IO CInt
foreign import capi safe "unistd.h usleep" c_usleep :: CUInt -> IO CInt
foreign import capi unsafe "unistd.h gettid" c_gettid :: IO CInt

pipe :: IO (CInt, CInt)
pipe = allocaArray 2 $ \p -> do
  _ <- c_pipe p
  [r, w] <- peekArray 2 p
  return (r, w)

-- | Hands the byte on until a 1 comes, which is handed on too; it begins with one of its own if it is the first.
hand :: Word64 -> Bool -> CInt -> CInt -> IO ()
hand end first from to = alloca $ \p -> do
  poke p 0
  let go = do
        n <- c_read from p 1
        b <- peek p
        now <- getMonotonicTimeNSec
        let over = b /= 0 || n /= 1 || first && now > end
        poke p (if over then 1 else 0)
        _ <- c_write to p 1
        unless over go
  if first then c_write to p 1 >> go else go
{-# NOINLINE hand #-}

rest :: Int -> IO ()
rest n = replicateM_ n (c_usleep 20000)
{-# NOINLINE rest #-}

-- | CPU time and time spent waiting for a CPU of the calling OS thread.
used :: IO (Word64, Word64)
used = do
  tid <- c_gettid
  s <- readFile ("/proc/self/task/" ++ show tid ++ "/schedstat")
  case map read (words s) of
    (cpu : delay : _) -> return (cpu, delay)
    _ -> error "schedstat"

main :: IO ()
main = do
  args <- getArgs
  let ms = case args of
        [a] -> read a
        _ -> 500
  begin <- getMonotonicTimeNSec
  let end = begin + ms * 1000000
  (r1, w1) <- pipe
  (r2, w2) <- pipe
  done <- newEmptyMVar
  let timed name act = forkOS $ do
        tid <- c_gettid
        (c0, d0) <- used
        t0 <- getMonotonicTimeNSec
        () <- act
        t1 <- getMonotonicTimeNSec
        (c1, d1) <- used
        putMVar done (unwords [name, show tid, "wall", show (t1 - t0), "cpu", show (c1 - c0), "delay", show (d1 - d0)])
  _ <- timed "ping" (hand end True r1 w2)
  _ <- timed "pong" (hand end False r2 w1)
  _ <- timed "rest" (rest (fromIntegral ms `div` 20))
  replicateM 3 (takeMVar done) >>= mapM_ putStrLn
