-- | Whether constraints hold with what was decided, and the decisions that they add.
module Solver (solve) where

import Types

-- | Nothing if they do not hold; else what undoes the decisions that were taken.
solve :: Constraints -> IO (Maybe (IO ()))
solve (Constraints all') = go (pure ()) all'
  where
    go undo [] = pure (Just undo)
    go undo (i :=: n : rest) = do
      d <- lookupDecision i
      case d of
        0 -> setDecision i n >> go (setDecision i 0 >> undo) rest
        _ | d == n -> go undo rest
          | otherwise -> undo >> pure Nothing
{-# NOINLINE solve #-}
