-- Simplifies expressions in a reader monad that could tell what it does, if asked to.
--
-- Nobody asks. But what it would tell does not depend on the flags, so GHC floats it
-- out of the function of the flags that a monadic action is (full laziness), and
-- then allocates a thunk for it at every step, whether or not it is wanted.
-- early: the flags are looked at before the action is made, and nothing floats.
--
-- Must show: with late, allocation at the call of Main.told in Main.late, although
-- no sample is ever in told; with early, none there.
--
-- usage: rewriter [late|early [STEPS [ROUNDS]]]
module Main (main) where

import Control.Monad (when)
import qualified Data.IntMap.Strict as IntMap
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let (way, steps, rounds) = case args of
        [w, s, r] -> (w, read s, read r)
        [w, s] -> (w, read s, 10)
        [w] -> (w, 300000, 10)
        _ -> ("late", 300000, 10) :: (String, Int, Int)
      rewrite = if way == "early" then early else late
      flags = Flags {verbose = way == "loud", depth = 3}
  print (sum [count (runs rewrite flags (steps + r)) | r <- [1 .. rounds]])

data Flags = Flags {verbose :: !Bool, depth :: !Int}

data State = State {count :: !Int, heard :: !Int}

-- | A reader of flags with a state.
newtype Action a = Action {run :: Flags -> State -> (a, State)}

instance Functor Action where
  fmap f (Action m) = Action (\fl st -> case m fl st of (a, s) -> (f a, s))

instance Applicative Action where
  pure a = Action (\_ st -> (a, st))
  Action f <*> Action m = Action (\fl st -> case f fl st of (g, s) -> case m fl s of (a, s') -> (g a, s'))

instance Monad Action where
  Action m >>= f = Action (\fl st -> case m fl st of (a, s) -> run (f a) fl s)

flagsNow :: Action Flags
flagsNow = Action (\fl st -> (fl, st))

{-# NOINLINE say #-}
say :: [Int] -> Action ()
say text = Action (\fl st -> ((), if depth fl > 0 then st {heard = heard st + length text} else st))

tick :: Int -> Action ()
tick n = Action (\_ st -> ((), st {count = count st + n}))

type Rewrite = IntMap.IntMap Int -> Int -> Action Int

runs :: Rewrite -> Flags -> Int -> State
runs rewrite flags steps = go 1 (State 0 0)
  where
    rules = IntMap.fromList [(k, k * k `mod` 61) | k <- [0 .. 60]]
    go k st
      | k > steps = st
      | otherwise = case run (rewrite rules k) flags st of (_, st') -> st' `seq` go (k + 1) st'

-- | Rewrites a number by the rules; the flags are looked at when it tells.
{-# NOINLINE late #-}
late :: Rewrite
late rules k = case IntMap.lookup (k `mod` 61) rules of
  Nothing -> pure k
  Just to -> do
    flags <- flagsNow
    when (verbose flags) (say (told k to))
    tick (to + depth flags)
    pure to

-- | The same, but for where the flags are looked at.
{-# NOINLINE early #-}
early :: Rewrite
early rules k = Action (\flags st -> case IntMap.lookup (k `mod` 61) rules of
  Nothing -> (k, st)
  Just to -> run (when (verbose flags) (say (told k to)) >> tick (to + depth flags) >> pure to) flags st)

-- | What there is to tell of a step.
{-# NOINLINE told #-}
told :: Int -> Int -> [Int]
told k to = [k, to, k - to]
