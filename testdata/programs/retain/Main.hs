{-# LANGUAGE BangPatterns, MagicHash, UnboxedTuples #-}
-- | Retains closures of every kind that a heap can have: a map of thunks and one of values, functions
-- and partial applications, arrays of all sorts, byte arrays that are pinned and that are not,
-- large ones and small ones, variables, weak pointers, blocked threads with shallow and deep
-- stacks, a compact region. Then it allocates, and replaces a part of what it retains, in each of
-- ROUNDS rounds; with the argument "rest" it says so, waits for a line, and then collects its heap
-- again and again until it gets another.
--
-- Must show: each kind with its bytes, at the binding that has made it.
--
-- usage: retain [SIZE [ROUNDS]] [rest] [SECRET]
module Main (main) where

import Control.Concurrent
import Control.Concurrent.STM (TVar, atomically, newTVarIO, readTVar, retry, writeTVar)
import Control.Monad
import Data.Char (isDigit)
import Data.IORef
import qualified Data.IntMap.Lazy as L
import qualified Data.Map.Strict as M
import Foreign (ForeignPtr, mallocForeignPtrBytes, pokeByteOff, withForeignPtr)
import GHC.Compact (compact, getCompact)
import GHC.Conc (labelThread)
import GHC.Exts
import GHC.IO (IO (..))
import System.Environment (getArgs)
import System.IO
import System.Mem (performMajorGC)
import System.Mem.Weak

data Tree = Leaf | Node !Int Tree Tree

-- A constructor of one word and no pointer, and one of a strict field.
data Boxes = Boxes Word Double | Lonely !Int

data Bytes = Bytes (MutableByteArray# RealWorld)
data Boxed = Boxed (MutableArray# RealWorld Int)
data Small = Small (SmallMutableArray# RealWorld Int)

{-# NOINLINE tree #-}
tree :: Int -> Tree
tree 0 = Leaf
tree n = Node n (tree (n - 1)) (tree (n - 1))

{-# NOINLINE thunks #-}
thunks :: Int -> L.IntMap Integer
thunks n = L.fromList [(i, product [1 .. toInteger (i `mod` 7)]) | i <- [1 .. n]]

{-# NOINLINE values #-}
values :: Int -> M.Map Int String
values n = M.fromList [(i, show i) | i <- [1 .. n]]

{-# NOINLINE functions #-}
functions :: Int -> [Int -> Int -> Int]
functions n = [if odd i then \x y -> x * i + y else three i | i <- [1 .. n]]

{-# NOINLINE three #-}
three :: Int -> Int -> Int -> Int
three a b c = a * b + c

{-# NOINLINE boxes #-}
boxes :: Int -> [Boxes]
boxes n = [if even i then Boxes (fromIntegral i) (fromIntegral i) else Lonely i | i <- [1 .. n]]

bytes :: Int -> IO Bytes
bytes (I# n) = IO $ \s -> case newByteArray# n s of (# s', a #) -> (# s', Bytes a #)

boxed :: Int -> IO Boxed
boxed (I# n) = IO $ \s -> case newArray# n 7 s of (# s', a #) -> (# s', Boxed a #)

small :: Int -> IO Small
small (I# n) = IO $ \s -> case newSmallArray# n 7 s of (# s', a #) -> (# s', Small a #)

deep :: MVar () -> Int -> IO Int
deep m 0 = takeMVar m >> return 0
deep m n = do
  x <- deep m (n - 1)
  return $! x + n

waiting :: TVar Bool -> IO ()
waiting v = atomically $ do
  x <- readTVar v
  unless x retry

-- All that is retained.
data World = World
  { lazyMap :: IORef (L.IntMap Integer)
  , strictMap :: IORef (M.Map Int String)
  , trees :: IORef [Tree]
  , works :: [Int -> Int -> Int]
  , boxed1 :: [Boxes]
  , arrays :: ([Bytes], [Boxed], [Small])
  , pinned :: [ForeignPtr ()]
  , weak :: [Weak (IORef Int)]
  , alive :: [IORef Int]
  , gate :: MVar ()
  , flag :: TVar Bool
  , region :: IORef [String]
  }

make :: Int -> [String] -> IO World
make n secrets = do
  l <- newIORef $! thunks n
  forM_ (zip [1 ..] secrets) $ \(i, x) -> let k = number x in k `seq` modifyIORef' l (L.insert (negate i) k)
  s <- newIORef $! values n
  t <- newIORef [tree 6 | _ <- [1 .. n `div` 200]]
  bs <- mapM bytes ([8 .. 100] ++ [4000, 100000, 3000000])
  xs <- mapM boxed ([1 .. 50] ++ [1000, 300000])
  ss <- mapM small ([1 .. 60] ++ [1000])
  ps <- mapM mallocForeignPtrBytes ([16 .. 100] ++ [5000, 70000])
  forM_ (zip ps (cycle (if null secrets then ["nothing"] else secrets))) $ \(p, x) -> withForeignPtr p $ \a -> zipWithM_ (pokeByteOff a) [0 .. min 15 (length x - 1)] x
  refs <- mapM newIORef [1 .. n `div` 50]
  ws <- forM refs $ \r -> mkWeak r r Nothing
  m <- newEmptyMVar
  v <- newTVarIO False
  forM_ [1 .. 20 :: Int] $ \i -> do
    k <- forkIO $ void $ deep m (if i == 1 then 20000 else i)
    labelThread k ("waiter " ++ show i)
  replicateM_ 5 $ forkIO $ waiting v
  c <- compact (concat [show i : secrets | i <- [1 .. n `div` 10]])
  r <- newIORef (getCompact c)
  let fs = functions (n `div` 10)
      bx = boxes (n `div` 5)
  evaluateAll fs
  evaluateAll bx
  return World { lazyMap = l, strictMap = s, trees = t, works = fs, boxed1 = bx, arrays = (bs, xs, ss), pinned = ps, weak = ws, alive = refs, gate = m, flag = v, region = r }

-- A number whose bytes in memory are a text, from its end to its beginning.
{-# NOINLINE number #-}
number :: String -> Integer
number = foldl (\k c -> k * 256 + toInteger (fromEnum c)) 0

evaluateAll :: [a] -> IO ()
evaluateAll = mapM_ (`seq` return ())

turn :: World -> Int -> Int -> IO ()
turn w n i = do
  modifyIORef' (strictMap w) (M.insert (i `mod` n) (show i))
  modifyIORef' (lazyMap w) (L.insertWith (+) (i `mod` n) 1)
  modifyIORef (trees w) (\ts -> drop 1 ts ++ [tree 6])
  ts <- readIORef (trees w)
  evaluateAll (take 3 ts)

size :: World -> IO Int
size w = do
  a <- L.size <$> readIORef (lazyMap w)
  b <- M.size <$> readIORef (strictMap w)
  c <- length <$> readIORef (trees w)
  d <- length <$> readIORef (region w)
  e <- sum <$> mapM readIORef (alive w)
  f <- length <$> filterM (fmap (maybe False (const True)) . deRefWeak) (weak w)
  let (x, y, z) = arrays w
  forM_ (take 1 (pinned w)) $ \p -> withForeignPtr p $ \_ -> return ()
  return $! a + b + c + d + e + f + length x + length y + length z + length (works w) + length (boxed1 w) + length (pinned w)

untilFull :: MVar () -> IO ()
untilFull m = do
  performMajorGC
  threadDelay 1000
  full <- tryTakeMVar m
  maybe (untilFull m) return full

main :: IO ()
main = do
  args <- getArgs
  hSetBuffering stdout LineBuffering
  let (numbers, rest) = span (all isDigit) args
      (n, rounds) = case map read numbers of
        [k, r] -> (k, r)
        [k] -> (k, 1000)
        _ -> (20000, 1000)
      secrets = filter (/= "rest") rest
  w <- make n secrets
  forM_ [1 .. rounds] $ turn w n
  when ("rest" `elem` rest) $ do
    performMajorGC
    putStrLn "at rest"
    void getLine
    end <- newEmptyMVar
    _ <- forkIO (getLine >> putMVar end ())
    untilFull end
  _ <- tryPutMVar (gate w) ()
  atomically $ writeTVar (flag w) True
  size w >>= print
