{-# LANGUAGE RankNTypes #-}
-- | The classes of values that may be non-deterministic.
module Types (module Types, module ID, module ConstStore, module FailInfo, module IDSupply) where

import ConstStore
import FailInfo
import ID
import IDSupply

data Try a
  = Val a
  | Fail Cover FailInfo
  | Choice Cover ID a a
  | Narrowed Cover ID [a]
  | Free Cover ID [a]
  | Guard Cover Constraints a

class NonDet a where
  choiceCons :: Cover -> ID -> a -> a -> a
  choicesCons :: Cover -> ID -> [a] -> a
  failCons :: Cover -> FailInfo -> a
  guardCons :: Cover -> Constraints -> a -> a
  try :: a -> Try a

-- | A choice in an argument becomes one of the result.
narrow :: NonDet a => Cover -> ID -> a -> a -> a
narrow = choiceCons
{-# NOINLINE narrow #-}

-- | A variable that is looked at becomes a choice between its constructors.
narrows :: NonDet b => ConstStore -> Cover -> ID -> (a -> b) -> [a] -> b
narrows cs cd i@(FreeID _) f xs = lookupCs cs i (\n -> f (xs !! (n - 1))) (choicesCons cd (narrowID i) (map f xs))
narrows _ cd i f xs = choicesCons cd i (map f xs)
{-# NOINLINE narrows #-}

class NonDet a => Generable a where
  generate :: IDSupply -> Cover -> a

class NonDet a => NormalForm a where
  ($!!) :: NonDet b => (a -> Cover -> ConstStore -> b) -> a -> Cover -> ConstStore -> b

-- | What every type does for normal forms, but for its values. Variables become values.
nfWith :: (NormalForm a, NonDet b) => (a -> b) -> (a -> Cover -> ConstStore -> b) -> a -> Cover -> ConstStore -> b
nfWith value k x cd cs = case try x of
  Val v -> value v
  Fail d info -> failCons d info
  Choice d i a b -> choiceCons d i ((k $!! a) cd cs) ((k $!! b) cd cs)
  Narrowed d i xs -> narrows cs d i (\y -> (k $!! y) cd cs) xs
  Free d i xs -> narrows cs d i (\y -> (k $!! y) cd cs) xs
  Guard d c e -> guardCons d c ((k $!! e) cd (addCs c cs))

class NormalForm a => Unifiable a where
  -- | Of two values; true with what it has to do for the arguments.
  unify :: NonDet b => a -> a -> Cover -> ConstStore -> b -> b
  -- | The decisions by which a variable is a value. Arguments that are variables stay so.
  bind :: ID -> a -> Maybe [Constraint]

-- | Strict unification, and what follows where it succeeds.
(=:=) :: (Unifiable a, NonDet b) => a -> a -> Cover -> ConstStore -> b -> b
(x =:= y) cd cs next = case try x of
  Val v -> value v
  Fail d info -> failCons d info
  Choice d i a b -> choiceCons d i ((a =:= y) cd cs next) ((b =:= y) cd cs next)
  Narrowed d i xs -> choicesCons d i (map (\a -> (a =:= y) cd cs next) xs)
  Free d i xs -> lookupCs cs i (\n -> ((xs !! (n - 1)) =:= y) cd cs next) (variable d i xs)
  Guard d c e -> guardCons d c ((e =:= y) cd (addCs c cs) next)
  where
    value v = case try y of
      Val w -> unify v w cd cs next
      Fail d info -> failCons d info
      Choice d i a b -> choiceCons d i ((v =:= a) cd cs next) ((v =:= b) cd cs next)
      Narrowed d i ys -> choicesCons d i (map (\b -> (v =:= b) cd cs next) ys)
      Free d i ys -> lookupCs cs i (\n -> (v =:= (ys !! (n - 1))) cd cs next) (bound d i v (narrows cs d i (\b -> (v =:= b) cd cs next) ys))
      Guard d c e -> guardCons d c ((v =:= e) cd (addCs c cs) next)
    variable d i xs = case try y of
      Val w -> bound d i w (narrows cs d i (\a -> (a =:= w) cd cs next) xs)
      _ -> narrows cs d i (\a -> (a =:= y) cd cs next) xs
    bound d i v otherwise' = case bind i v of
      Just c -> guardCons d (Constraints c) next
      Nothing -> otherwise'
{-# NOINLINE (=:=) #-}
