-- | What generated code calls.
module Basics (module Basics, module Types) where

import Types

-- | The choice between two values: Curry's (?).
choice :: NonDet a => a -> a -> IDSupply -> Cover -> ConstStore -> a
choice x y s cd _ = choiceCons cd (thisID s) x y
{-# NOINLINE choice #-}

-- | A function as a value: with what decides for it.
newtype Func a b = Func (a -> IDSupply -> Cover -> ConstStore -> b)

wrapDX :: (a -> Cover -> ConstStore -> b) -> Func a b
wrapDX f = Func (\x _ -> f x)

nd_apply :: Func a b -> a -> IDSupply -> Cover -> ConstStore -> b
nd_apply (Func f) = f
{-# NOINLINE nd_apply #-}
