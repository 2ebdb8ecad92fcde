-- | Depth-first search for values, and what it met: choices, guards, failures.
module Search (Met (..), searchDFS) where

import Data.IORef
import Solver
import Types

-- | How often search took an alternative of a choice that was open, solved a guard's constraints,
-- and came to a failure.
data Met = Met { choices, guards, failures, values :: !Int }

searchDFS :: NormalForm a => (a -> IO ()) -> (IDSupply -> Cover -> ConstStore -> a) -> IO Met
searchDFS found expr = do
  met <- newIORef (Met 0 0 0 0)
  s <- initSupply
  dfs met found (((\x _ _ -> x) $!! expr s 0 emptyCs) 0 emptyCs)
  readIORef met

dfs :: NonDet a => IORef Met -> (a -> IO ()) -> a -> IO ()
dfs met found x = case try x of
  Val v -> modifyIORef' met (\m -> m { values = values m + 1 }) >> found v
  Fail _ _ -> modifyIORef' met (\m -> m { failures = failures m + 1 })
  Choice _ i a b -> alternatives i [a, b]
  Narrowed _ i xs -> alternatives i xs
  Free _ _ _ -> modifyIORef' met (\m -> m { values = values m + 1 }) >> found x
  Guard _ c e -> do
    modifyIORef' met (\m -> m { guards = guards m + 1 })
    solved <- solve c
    case solved of
      Just undo -> dfs met found e >> undo
      Nothing -> modifyIORef' met (\m -> m { failures = failures m + 1 })
  where
    alternatives i xs = do
      d <- lookupDecision i
      if d /= 0
        then dfs met found (xs !! (d - 1))
        else do
          mapM_ (\(n, a) -> do
            modifyIORef' met (\m -> m { choices = choices m + 1 })
            setDecision i n
            dfs met found a) (zip [1 ..] xs)
          setDecision i 0
{-# NOINLINE dfs #-}
