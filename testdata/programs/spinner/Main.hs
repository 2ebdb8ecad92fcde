-- | Keeps N tokens alive in ways that only its running thread knows, and runs on for ever.
--
-- * register: an argument of a loop that allocates nothing
-- * stack: a frame on the stack of such a loop, at any depth of DEPTH frames
-- * fresh: a closure that was allocated last, with a few others, is such an argument
-- * code: a global variable to which only the loop's own code refers
-- * c: an argument of a loop that calls C functions (unsafe)
-- * below: a global variable to which only a frame's code refers that is below such calls, which wait
-- * steady: a loop that allocates, so that there are minor collections
-- * pair: arguments of two such loops, of two threads (-N2); the other's list has a token more
-- * deep: an argument that is used behind a call of a C function (unsafe) with a frame of 128 KB
-- * collect: it waits for a line, and collects its heap again and again from then on
--
-- Must show: a census between collections finds that the thread (for code and below, the global variable) retains 24 N bytes;
-- of deep it says that it does not know what the thread holds.
--
-- usage: spinner MODE N
module Main (main) where

import Control.Concurrent (forkOn)
import Control.Exception (evaluate)
import Control.Monad (forever, void)
import Data.IORef
import GHC.IO (unsafePerformIO)
import System.Environment (getArgs)
import System.IO
import System.Mem (performMajorGC)

data Token = Token !Word Token | NoToken

data Holder = Holder !Word Token Holder | NoHolder

{-# NOINLINE tokens #-}
tokens :: Word -> Token
tokens n = go n NoToken
  where
    go 0 t = t
    go k t = let t' = Token k t in t' `seq` go (k - 1) t'

{-# NOINLINE total #-}
total :: Token -> Word
total (Token k t) = k + total t
total NoToken = 0

-- A generator of full period: it is 0 once in 2^64 steps.
step :: Word -> Word
step i = i * 6364136223846793005 + 1442695040888963407

{-# NOINLINE spin #-}
spin :: Token -> Word -> Token
spin t i
  | i == 0 = t
  | otherwise = spin t (step i)

{-# NOINLINE spinHolder #-}
spinHolder :: Holder -> Word -> Holder
spinHolder h i
  | i == 0 = h
  | otherwise = spinHolder h (step i)

{-# NOINLINE idle #-}
idle :: Word -> Word
idle i
  | i == 0 = i
  | otherwise = idle (step i)

{-# NOINLINE deep #-}
deep :: Token -> Word -> Word
deep t 0 = case idle 1 of i -> i + total t
deep t d = 1 + deep t (d - 1)

foreign import ccall unsafe "math.h cos" c_cos :: Double -> Double

{-# NOINLINE spinC #-}
spinC :: Token -> Double -> Token
spinC t x
  | x > 2 = t
  | otherwise = spinC t (c_cos (x + 100000))

foreign import ccall unsafe "spinner_deep" c_deep :: Int -> IO Int

foreign import ccall unsafe "unistd.h usleep" c_usleep :: Word -> IO Int

-- The table is referred to where the calls return.
{-# NOINLINE below #-}
below :: Word -> IO Word
below i = do
  r <- sleeps i
  return $! fromIntegral r + total table

{-# NOINLINE sleeps #-}
sleeps :: Word -> IO Int
sleeps i = do
  r <- c_usleep 900000
  if i == 0 && r == 12345 then return r else sleeps (step i)

-- What it allocates is kept for a while, and then is not.
{-# NOINLINE allocate #-}
allocate :: Token -> [Word] -> Word -> IO Token
allocate t kept i
  | i == 0 = return t
  | i `rem` 1000 == 0 = length kept `seq` allocate t [] (step i)
  | otherwise = allocate t (i : kept) (step i)

size :: IORef Word
size = unsafePerformIO (newIORef 0)
{-# NOINLINE size #-}

table :: Token
table = unsafePerformIO (fmap tokens (readIORef size))
{-# NOINLINE table #-}

-- The table is referred to where the loop ends.
{-# NOINLINE spinCode #-}
spinCode :: Word -> IO Word
spinCode i
  | i == 0 = return $! total table
  | otherwise = spinCode (step i)

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  [mode, arg] <- getArgs
  let n = read arg
  writeIORef size n
  seed <- fmap (fromIntegral . min 1) (evaluate (length arg))
  let ready = performMajorGC >> putStrLn "ready"
      make = evaluate (tokens n)
  case mode of
    "register" -> do { t <- make; ready; evaluate (spin t seed) >>= print . total }
    "stack" -> do { t <- make; ready; print (deep t 300) }
    "fresh" -> do
      t <- make
      ready
      h <- evaluate (Holder 1 NoToken (Holder seed t (Holder 2 NoToken NoHolder)))
      evaluate (spinHolder h seed) >>= print . held
    "code" -> do { _ <- evaluate table; ready; spinCode seed >>= print }
    "c" -> do { t <- make; ready; evaluate (spinC t (fromIntegral seed)) >>= print . total }
    "below" -> do { _ <- evaluate table; ready; below seed >>= print }
    "steady" -> do { t <- make; ready; allocate t [] seed >>= print . total }
    "pair" -> do
      t <- make
      u <- evaluate (tokens (n + 1))
      ready
      void (forkOn 1 (evaluate (spin u seed) >>= print . total))
      evaluate (spin t seed) >>= print . total
    "deep" -> do { t <- make; ready; i <- c_deep 1; print (fromIntegral i + total t) }
    "collect" -> do { t <- make; ready; _ <- getLine; forever performMajorGC >> print (total t) }
    _ -> error "usage: spinner MODE N"

held :: Holder -> Word
held (Holder k t h) = k + total t + held h
held NoHolder = 0
