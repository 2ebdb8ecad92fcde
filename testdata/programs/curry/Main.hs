{-# LANGUAGE MagicHash #-}
-- A functional-logic program as the Curry compiler KiCS2 would make it, with a run-time system of
-- its own that is as small as can be: all hand-written. Prints the values that search finds, and
-- what it met on the way.
--
-- Must show: functions by their Curry names (Puzzles.perm (nd)) at lines of Puzzles.curry, and
-- search as (search).
--
-- usage: curry [line] permsort|queens|last|knights|toss|bets|descend [N [ROUNDS]]
-- toss makes N choices in each round, and nothing else does; of bets, heads makes N choices in each round, tails 3 N, and
-- lost 2 N failures; descend works once for ROUNDS steps, below
-- N choices that are open. With "line" before these it says so, and begins when it has read one.
module Main (main) where

import Basics (ConstStore, Cover, IDSupply, choice, emptyCs, initSupply, wrapDX)
import Control.Monad (replicateM_)
import Curry_Prelude
import Curry_Puzzles
import Data.IORef (newIORef, modifyIORef', readIORef, writeIORef)
import GHC.Exts (Int (I#))
import Search
import System.Environment (getArgs)
import System.IO (hFlush, stdout)

main :: IO ()
main = do
  given <- getArgs
  args <- case given of
    "line" : rest -> putStrLn "ready" >> hFlush stdout >> getLine >> pure rest
    _ -> pure given
  case args of
    ["toss", n, rounds] -> do
      s <- initSupply
      replicateM_ (read rounds) (toss (read n) s)
    ["bets", n, rounds] -> do
      s <- initSupply
      replicateM_ (read rounds) (heads (read n) s >> tails (3 * read n) s >> lost (2 * read n))
    what : rest ->
      let (n, rounds) = case map read rest of
            [] -> (8, 1)
            [x] -> (x, 1)
            x : r : _ -> (x, r)
       in run what n rounds
    _ -> run "queens" 6 1

run :: String -> Int -> Int -> IO ()
run what n rounds = do
  end <- newIORef (Met 0 0 0 0)
  total <- newIORef 0
  let add x = modifyIORef' total (+ x)
      search :: IO Met
      search = case what of
        "permsort" -> searchDFS (add . ints) (nd_C_permSort (down n))
        "queens" -> searchDFS (add . ints) (nd_C_queens (int n))
        "last" -> searchDFS (add . digit) (\s cd cs -> nd_C_last (nd_C_map (wrapDX d_C_digit) (down n) s cd cs) s cd cs)
        "descend" -> searchDFS (add . digit) (\s cd cs -> nd_C_descend (int n) (int rounds) s cd cs)
        _ -> searchDFS (add . bools) (\s cd cs -> nd_C_knights s cd cs)
  replicateM_ (if what == "descend" then 1 else rounds) (search >>= writeIORef end)
  Met c g f v <- readIORef end
  sum' <- readIORef total
  putStrLn (what ++ ": sum " ++ show sum' ++ ", choices " ++ show c ++ ", guards " ++ show g ++ ", failures " ++ show f ++ ", values " ++ show v)

{-# NOINLINE toss #-}
toss :: Int -> IDSupply -> IO ()
toss 0 _ = pure ()
toss n s = case choice C_False C_True s n emptyCs of
  Choice_C_Bool {} -> toss (n - 1) s
  _ -> fail "no choice"

{-# NOINLINE heads #-}
heads :: Int -> IDSupply -> IO ()
heads 0 _ = pure ()
heads n s = case choice C_False C_True s (uneven n) emptyCs of
  Choice_C_Bool {} -> heads (n - 1) s
  _ -> fail "no choice"

{-# NOINLINE tails #-}
tails :: Int -> IDSupply -> IO ()
tails 0 _ = pure ()
tails n s = case choice C_True C_False s (uneven n) emptyCs of
  Choice_C_Bool {} -> tails (n - 1) s
  _ -> fail "no choice"

{-# NOINLINE lost #-}
lost :: Int -> IO ()
lost 0 = pure ()
lost n = case d_C_cond C_False C_True (uneven n) emptyCs of
  Fail_C_Bool {} -> lost (n - 1)
  _ -> fail "no failure"

-- | Allocates more or less, so that blocks of the nursery do not become full at the same place of a loop.
{-# NOINLINE uneven #-}
uneven :: Int -> Int
uneven n = ints (down (n * 7919 `rem` 11))

int :: Int -> C_Int
int (I# x) = C_Int x

down :: Int -> OP_List C_Int
down 0 = OP_List
down n = OP_Cons (int n) (down (n - 1))

d_C_digit :: C_Int -> Cover -> ConstStore -> C_Int
d_C_digit (C_Int x) _ _ = int (I# x `rem` 10)
d_C_digit x _ _ = x

digit :: C_Int -> Int
digit (C_Int x) = I# x
digit _ = -1

ints :: OP_List C_Int -> Int
ints (OP_Cons (C_Int x) xs) = I# x + 10 * ints xs
ints _ = 0

bools :: OP_List C_Bool -> Int
bools (OP_Cons C_True xs) = 1 + 2 * bools xs
bools (OP_Cons _ xs) = 2 * bools xs
bools _ = 0

