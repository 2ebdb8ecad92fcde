-- | What is known of variables in the branch that is being evaluated.
module ConstStore (ConstStore, emptyCs, addCs, lookupCs) where

import qualified Data.IntMap.Strict as Map
import ID

newtype ConstStore = ConstStore (Map.IntMap Int)

emptyCs :: ConstStore
emptyCs = ConstStore Map.empty

addCs :: Constraints -> ConstStore -> ConstStore
addCs (Constraints cs) (ConstStore m) = ConstStore (foldr (\(i :=: n) -> Map.insert (getKey i) n) m cs)
{-# NOINLINE addCs #-}

-- | The alternative that a variable is bound to, or else the default.
lookupCs :: ConstStore -> ID -> (Int -> b) -> b -> b
lookupCs (ConstStore m) i found none = maybe none found (Map.lookup (getKey i) m)
{-# NOINLINE lookupCs #-}
