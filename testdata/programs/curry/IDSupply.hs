-- | The supply of identifiers: an infinite binary tree, made as it is looked at. Each node has a
-- number and the decision that search has taken for it.
module IDSupply (IDSupply, initSupply, leftSupply, rightSupply, unique, decision) where

import Data.IORef (IORef, newIORef, atomicModifyIORef')
import System.IO.Unsafe (unsafeInterleaveIO)

data IDSupply = IDSupply
  { unique :: !Int
  , decision :: !(IORef Int) -- 0: none; n: the n-th alternative
  , leftSupply :: IDSupply
  , rightSupply :: IDSupply
  }

initSupply :: IO IDSupply
initSupply = newIORef 0 >>= node

node :: IORef Int -> IO IDSupply
node next = do
  n <- atomicModifyIORef' next (\k -> (k + 1, k))
  d <- newIORef 0
  l <- unsafeInterleaveIO (node next)
  r <- unsafeInterleaveIO (node next)
  pure (IDSupply n d l r)
