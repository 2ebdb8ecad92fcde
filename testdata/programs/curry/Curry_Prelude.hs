{-# LANGUAGE MagicHash #-}
{-# OPTIONS_GHC -w #-}
module Curry_Prelude where

import Basics
import GHC.Exts

data C_Bool
     = C_False
     | C_True
     | Choice_C_Bool Cover ID C_Bool C_Bool
     | Choices_C_Bool Cover ID [C_Bool]
     | Fail_C_Bool Cover FailInfo
     | Guard_C_Bool Cover Constraints C_Bool

instance NonDet C_Bool where
  choiceCons = Choice_C_Bool
  choicesCons = Choices_C_Bool
  failCons = Fail_C_Bool
  guardCons = Guard_C_Bool
  try (Choice_C_Bool cd i x y) = Choice cd i x y
  try (Choices_C_Bool cd i@(FreeID _) xs) = Free cd i xs
  try (Choices_C_Bool cd i xs) = Narrowed cd i xs
  try (Fail_C_Bool cd info) = Fail cd info
  try (Guard_C_Bool cd c e) = Guard cd c e
  try x = Val x

instance Generable C_Bool where
  generate s cd = Choices_C_Bool cd (freeID s) [C_False, C_True]

instance NormalForm C_Bool where
  ($!!) cont x cd cs = nfWith (\v -> cont v cd cs) cont x cd cs

instance Unifiable C_Bool where
  unify C_False C_False cd cs next = next
  unify C_True C_True cd cs next = next
  unify _ _ cd _ _ = failCons cd defFailInfo
  bind i C_False = Just [i :=: 1]
  bind i C_True = Just [i :=: 2]

data C_Int
     = C_Int Int#
     | Choice_C_Int Cover ID C_Int C_Int
     | Choices_C_Int Cover ID [C_Int]
     | Fail_C_Int Cover FailInfo
     | Guard_C_Int Cover Constraints C_Int

instance NonDet C_Int where
  choiceCons = Choice_C_Int
  choicesCons = Choices_C_Int
  failCons = Fail_C_Int
  guardCons = Guard_C_Int
  try (Choice_C_Int cd i x y) = Choice cd i x y
  try (Choices_C_Int cd i@(FreeID _) xs) = Free cd i xs
  try (Choices_C_Int cd i xs) = Narrowed cd i xs
  try (Fail_C_Int cd info) = Fail cd info
  try (Guard_C_Int cd c e) = Guard cd c e
  try x = Val x

-- Of a variable only the digits, as much as the programs here need.
instance Generable C_Int where
  generate s cd = Choices_C_Int cd (freeID s)
    [C_Int 0#, C_Int 1#, C_Int 2#, C_Int 3#, C_Int 4#, C_Int 5#, C_Int 6#, C_Int 7#, C_Int 8#, C_Int 9#]

instance NormalForm C_Int where
  ($!!) cont x cd cs = nfWith (\v -> cont v cd cs) cont x cd cs

instance Unifiable C_Int where
  unify (C_Int x) (C_Int y) cd cs next | isTrue# (x ==# y) = next
  unify _ _ cd _ _ = failCons cd defFailInfo
  bind i (C_Int x) | isTrue# (x >=# 0#), isTrue# (x <=# 9#) = Just [i :=: (I# x + 1)]
  bind _ _ = Nothing

data OP_List a
     = OP_List
     | OP_Cons a (OP_List a)
     | Choice_OP_List Cover ID (OP_List a) (OP_List a)
     | Choices_OP_List Cover ID [OP_List a]
     | Fail_OP_List Cover FailInfo
     | Guard_OP_List Cover Constraints (OP_List a)

instance NonDet (OP_List a) where
  choiceCons = Choice_OP_List
  choicesCons = Choices_OP_List
  failCons = Fail_OP_List
  guardCons = Guard_OP_List
  try (Choice_OP_List cd i x y) = Choice cd i x y
  try (Choices_OP_List cd i@(FreeID _) xs) = Free cd i xs
  try (Choices_OP_List cd i xs) = Narrowed cd i xs
  try (Fail_OP_List cd info) = Fail cd info
  try (Guard_OP_List cd c e) = Guard cd c e
  try x = Val x

instance Generable a => Generable (OP_List a) where
  generate s cd = Choices_OP_List cd (freeID s)
    [OP_List, OP_Cons (generate (leftSupply s) cd) (generate (rightSupply s) cd)]

instance NormalForm a => NormalForm (OP_List a) where
  ($!!) cont x cd cs = nfWith value cont x cd cs
    where
      value (OP_Cons y ys) = ((\y' cd1 cs1 -> ((\ys' cd2 cs2 -> cont (OP_Cons y' ys') cd2 cs2) $!! ys) cd1 cs1) $!! y) cd cs
      value v = cont v cd cs

instance Unifiable a => Unifiable (OP_List a) where
  unify OP_List OP_List cd cs next = next
  unify (OP_Cons x xs) (OP_Cons y ys) cd cs next = (x =:= y) cd cs ((xs =:= ys) cd cs next)
  unify _ _ cd _ _ = failCons cd defFailInfo
  bind i OP_List = Just [i :=: 1]
  bind _ _ = Nothing -- its arguments may need evaluation

d_OP_plus_plus :: OP_List a -> OP_List a -> Cover -> ConstStore -> OP_List a
d_OP_plus_plus x1 x2 cd cs = case x1 of
     OP_List -> x2
     OP_Cons x3 x4 -> OP_Cons x3 (d_OP_plus_plus x4 x2 cd cs)
     Choice_OP_List d i l r -> narrow d i (d_OP_plus_plus l x2 cd cs) (d_OP_plus_plus r x2 cd cs)
     Choices_OP_List d i xs -> narrows cs d i (\z -> d_OP_plus_plus z x2 cd cs) xs
     Guard_OP_List d c e -> guardCons d c (d_OP_plus_plus e x2 cd (addCs c cs))
     Fail_OP_List d info -> failCons d info

d_C_enumFromTo :: C_Int -> C_Int -> Cover -> ConstStore -> OP_List C_Int
d_C_enumFromTo x1@(C_Int a) x2@(C_Int b) cd cs
  | isTrue# (a ># b) = OP_List
  | otherwise = OP_Cons x1 (d_C_enumFromTo (C_Int (a +# 1#)) x2 cd cs)

-- A higher-order function has both versions.
d_C_map :: (a -> Cover -> ConstStore -> b) -> OP_List a -> Cover -> ConstStore -> OP_List b
d_C_map x1 x2 cd cs = case x2 of
     OP_List -> OP_List
     OP_Cons x3 x4 -> OP_Cons (x1 x3 cd cs) (d_C_map x1 x4 cd cs)
     Choice_OP_List d i l r -> narrow d i (d_C_map x1 l cd cs) (d_C_map x1 r cd cs)
     Choices_OP_List d i xs -> narrows cs d i (\z -> d_C_map x1 z cd cs) xs
     Guard_OP_List d c e -> guardCons d c (d_C_map x1 e cd (addCs c cs))
     Fail_OP_List d info -> failCons d info
{-# NOINLINE d_C_map #-}

nd_C_map :: Func a b -> OP_List a -> IDSupply -> Cover -> ConstStore -> OP_List b
nd_C_map x1 x2 s cd cs = case x2 of
     OP_List -> OP_List
     OP_Cons x3 x4 -> OP_Cons (nd_apply x1 x3 (leftSupply s) cd cs) (nd_C_map x1 x4 (rightSupply s) cd cs)
     Choice_OP_List d i l r -> narrow d i (nd_C_map x1 l s cd cs) (nd_C_map x1 r s cd cs)
     Choices_OP_List d i xs -> narrows cs d i (\z -> nd_C_map x1 z s cd cs) xs
     Guard_OP_List d c e -> guardCons d c (nd_C_map x1 e s cd (addCs c cs))
     Fail_OP_List d info -> failCons d info
{-# NOINLINE nd_C_map #-}

d_OP_plus :: C_Int -> C_Int -> Cover -> ConstStore -> C_Int
d_OP_plus = d_arith (\a b -> C_Int (a +# b))

d_OP_minus :: C_Int -> C_Int -> Cover -> ConstStore -> C_Int
d_OP_minus = d_arith (\a b -> C_Int (a -# b))

d_OP_lt_eq :: C_Int -> C_Int -> Cover -> ConstStore -> C_Bool
d_OP_lt_eq = d_arith (\a b -> if isTrue# (a <=# b) then C_True else C_False)

d_OP_eq_eq :: C_Int -> C_Int -> Cover -> ConstStore -> C_Bool
d_OP_eq_eq = d_arith (\a b -> if isTrue# (a ==# b) then C_True else C_False)

d_arith :: NonDet b => (Int# -> Int# -> b) -> C_Int -> C_Int -> Cover -> ConstStore -> b
d_arith op x1 x2 cd cs = case x1 of
     C_Int a -> case x2 of
          C_Int b -> op a b
          Choice_C_Int d i l r -> narrow d i (d_arith op x1 l cd cs) (d_arith op x1 r cd cs)
          Choices_C_Int d i xs -> narrows cs d i (\z -> d_arith op x1 z cd cs) xs
          Guard_C_Int d c e -> guardCons d c (d_arith op x1 e cd (addCs c cs))
          Fail_C_Int d info -> failCons d info
     Choice_C_Int d i l r -> narrow d i (d_arith op l x2 cd cs) (d_arith op r x2 cd cs)
     Choices_C_Int d i xs -> narrows cs d i (\z -> d_arith op z x2 cd cs) xs
     Guard_C_Int d c e -> guardCons d c (d_arith op e x2 cd (addCs c cs))
     Fail_C_Int d info -> failCons d info

-- | if x1 then x2 else fail, the guard of a rule.
d_C_cond :: NonDet a => C_Bool -> a -> Cover -> ConstStore -> a
d_C_cond x1 x2 cd cs = case x1 of
     C_True -> x2
     C_False -> failCons cd defFailInfo
     Choice_C_Bool d i l r -> narrow d i (d_C_cond l x2 cd cs) (d_C_cond r x2 cd cs)
     Choices_C_Bool d i xs -> narrows cs d i (\z -> d_C_cond z x2 cd cs) xs
     Guard_C_Bool d c e -> guardCons d c (d_C_cond e x2 cd (addCs c cs))
     Fail_C_Bool d info -> failCons d info

d_OP_amp_amp :: C_Bool -> C_Bool -> Cover -> ConstStore -> C_Bool
d_OP_amp_amp x1 x2 cd cs = case x1 of
     C_True -> x2
     C_False -> C_False
     Choice_C_Bool d i l r -> narrow d i (d_OP_amp_amp l x2 cd cs) (d_OP_amp_amp r x2 cd cs)
     Choices_C_Bool d i xs -> narrows cs d i (\z -> d_OP_amp_amp z x2 cd cs) xs
     Guard_C_Bool d c e -> guardCons d c (d_OP_amp_amp e x2 cd (addCs c cs))
     Fail_C_Bool d info -> failCons d info

d_C_not :: C_Bool -> Cover -> ConstStore -> C_Bool
d_C_not x1 cd cs = case x1 of
     C_True -> C_False
     C_False -> C_True
     Choice_C_Bool d i l r -> narrow d i (d_C_not l cd cs) (d_C_not r cd cs)
     Choices_C_Bool d i xs -> narrows cs d i (\z -> d_C_not z cd cs) xs
     Guard_C_Bool d c e -> guardCons d c (d_C_not e cd (addCs c cs))
     Fail_C_Bool d info -> failCons d info
