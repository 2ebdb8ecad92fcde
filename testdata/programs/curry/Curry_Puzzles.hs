{-# LANGUAGE MagicHash #-}
{-# OPTIONS_GHC -w #-}
module Curry_Puzzles where

import Basics
import qualified Curry_Prelude
import Curry_Prelude (OP_List (..), C_Int (..), C_Bool (..))

-- Of Puzzles.curry; the line pragmas are as a generator that knows its source writes them.

{-# LINE 5 "Puzzles.curry" #-}
nd_C_insert :: a -> OP_List a -> IDSupply -> Cover -> ConstStore -> OP_List a
{-# LINE 6 "Puzzles.curry" #-}
nd_C_insert x1 x2 s cd cs = case x2 of
{-# LINE 6 "Puzzles.curry" #-}
     OP_List -> OP_Cons x1 OP_List
{-# LINE 7 "Puzzles.curry" #-}
     OP_Cons x3 x4 -> choice (OP_Cons x1 (OP_Cons x3 x4)) (OP_Cons x3 (nd_C_insert x1 x4 (rightSupply s) cd cs)) s cd cs
{-# LINE 5 "Puzzles.curry" #-}
     Choice_OP_List d i l r -> narrow d i (nd_C_insert x1 l s cd cs) (nd_C_insert x1 r s cd cs)
{-# LINE 5 "Puzzles.curry" #-}
     Choices_OP_List d i xs -> narrows cs d i (\z -> nd_C_insert x1 z s cd cs) xs
{-# LINE 5 "Puzzles.curry" #-}
     Guard_OP_List d c e -> guardCons d c (nd_C_insert x1 e s cd (addCs c cs))
{-# LINE 5 "Puzzles.curry" #-}
     Fail_OP_List d info -> failCons d info
{-# LINE 10 "Puzzles.curry" #-}
nd_C_perm :: OP_List a -> IDSupply -> Cover -> ConstStore -> OP_List a
{-# LINE 11 "Puzzles.curry" #-}
nd_C_perm x1 s cd cs = case x1 of
{-# LINE 11 "Puzzles.curry" #-}
     OP_List -> OP_List
{-# LINE 12 "Puzzles.curry" #-}
     OP_Cons x2 x3 -> nd_C_insert x2 (nd_C_perm x3 (leftSupply s) cd cs) (rightSupply s) cd cs
{-# LINE 10 "Puzzles.curry" #-}
     Choice_OP_List d i l r -> narrow d i (nd_C_perm l s cd cs) (nd_C_perm r s cd cs)
{-# LINE 10 "Puzzles.curry" #-}
     Choices_OP_List d i xs -> narrows cs d i (\z -> nd_C_perm z s cd cs) xs
{-# LINE 10 "Puzzles.curry" #-}
     Guard_OP_List d c e -> guardCons d c (nd_C_perm e s cd (addCs c cs))
{-# LINE 10 "Puzzles.curry" #-}
     Fail_OP_List d info -> failCons d info
{-# LINE 15 "Puzzles.curry" #-}
d_C_sorted :: OP_List C_Int -> Cover -> ConstStore -> C_Bool
{-# LINE 16 "Puzzles.curry" #-}
d_C_sorted x1 cd cs = case x1 of
{-# LINE 16 "Puzzles.curry" #-}
     OP_List -> C_True
{-# LINE 17 "Puzzles.curry" #-}
     OP_Cons x2 x3 -> d_OP__case_1 x2 x3 cd cs
{-# LINE 15 "Puzzles.curry" #-}
     Choice_OP_List d i l r -> narrow d i (d_C_sorted l cd cs) (d_C_sorted r cd cs)
{-# LINE 15 "Puzzles.curry" #-}
     Choices_OP_List d i xs -> narrows cs d i (\z -> d_C_sorted z cd cs) xs
{-# LINE 15 "Puzzles.curry" #-}
     Guard_OP_List d c e -> guardCons d c (d_C_sorted e cd (addCs c cs))
{-# LINE 15 "Puzzles.curry" #-}
     Fail_OP_List d info -> failCons d info
{-# LINE 18 "Puzzles.curry" #-}
d_OP__case_1 :: C_Int -> OP_List C_Int -> Cover -> ConstStore -> C_Bool
{-# LINE 18 "Puzzles.curry" #-}
d_OP__case_1 x2 x3 cd cs = case x3 of
{-# LINE 17 "Puzzles.curry" #-}
     OP_List -> C_True
{-# LINE 18 "Puzzles.curry" #-}
     OP_Cons x4 x5 -> Curry_Prelude.d_OP_amp_amp (Curry_Prelude.d_OP_lt_eq x2 x4 cd cs) (d_C_sorted x3 cd cs) cd cs
{-# LINE 18 "Puzzles.curry" #-}
     Choice_OP_List d i l r -> narrow d i (d_OP__case_1 x2 l cd cs) (d_OP__case_1 x2 r cd cs)
{-# LINE 18 "Puzzles.curry" #-}
     Choices_OP_List d i xs -> narrows cs d i (\z -> d_OP__case_1 x2 z cd cs) xs
{-# LINE 18 "Puzzles.curry" #-}
     Guard_OP_List d c e -> guardCons d c (d_OP__case_1 x2 e cd (addCs c cs))
{-# LINE 18 "Puzzles.curry" #-}
     Fail_OP_List d info -> failCons d info
{-# LINE 21 "Puzzles.curry" #-}
nd_C_permSort :: OP_List C_Int -> IDSupply -> Cover -> ConstStore -> OP_List C_Int
{-# LINE 22 "Puzzles.curry" #-}
nd_C_permSort x1 s cd cs = let x2 = nd_C_perm x1 s cd cs in Curry_Prelude.d_C_cond (d_C_sorted x2 cd cs) x2 cd cs
{-# LINE 25 "Puzzles.curry" #-}
nd_C_queens :: C_Int -> IDSupply -> Cover -> ConstStore -> OP_List C_Int
{-# LINE 26 "Puzzles.curry" #-}
nd_C_queens x1 s cd cs = let x2 = nd_C_perm (Curry_Prelude.d_C_enumFromTo (C_Int 1#) x1 cd cs) s cd cs in Curry_Prelude.d_C_cond (d_C_safe x2 cd cs) x2 cd cs
{-# LINE 29 "Puzzles.curry" #-}
d_C_safe :: OP_List C_Int -> Cover -> ConstStore -> C_Bool
{-# LINE 30 "Puzzles.curry" #-}
d_C_safe x1 cd cs = case x1 of
{-# LINE 30 "Puzzles.curry" #-}
     OP_List -> C_True
{-# LINE 31 "Puzzles.curry" #-}
     OP_Cons x2 x3 -> Curry_Prelude.d_OP_amp_amp (d_C_free x2 (C_Int 1#) x3 cd cs) (d_C_safe x3 cd cs) cd cs
{-# LINE 29 "Puzzles.curry" #-}
     Choice_OP_List d i l r -> narrow d i (d_C_safe l cd cs) (d_C_safe r cd cs)
{-# LINE 29 "Puzzles.curry" #-}
     Choices_OP_List d i xs -> narrows cs d i (\z -> d_C_safe z cd cs) xs
{-# LINE 29 "Puzzles.curry" #-}
     Guard_OP_List d c e -> guardCons d c (d_C_safe e cd (addCs c cs))
{-# LINE 29 "Puzzles.curry" #-}
     Fail_OP_List d info -> failCons d info
{-# LINE 34 "Puzzles.curry" #-}
d_C_free :: C_Int -> C_Int -> OP_List C_Int -> Cover -> ConstStore -> C_Bool
{-# LINE 35 "Puzzles.curry" #-}
d_C_free x1 x2 x3 cd cs = case x3 of
{-# LINE 35 "Puzzles.curry" #-}
     OP_List -> C_True
{-# LINE 36 "Puzzles.curry" #-}
     OP_Cons x4 x5 -> Curry_Prelude.d_OP_amp_amp (Curry_Prelude.d_C_not (Curry_Prelude.d_OP_eq_eq (Curry_Prelude.d_OP_minus x4 x1 cd cs) x2 cd cs) cd cs) (Curry_Prelude.d_OP_amp_amp (Curry_Prelude.d_C_not (Curry_Prelude.d_OP_eq_eq (Curry_Prelude.d_OP_minus x1 x4 cd cs) x2 cd cs) cd cs) (d_C_free x1 (Curry_Prelude.d_OP_plus x2 (C_Int 1#) cd cs) x5 cd cs) cd cs) cd cs
{-# LINE 34 "Puzzles.curry" #-}
     Choice_OP_List d i l r -> narrow d i (d_C_free x1 x2 l cd cs) (d_C_free x1 x2 r cd cs)
{-# LINE 34 "Puzzles.curry" #-}
     Choices_OP_List d i xs -> narrows cs d i (\z -> d_C_free x1 x2 z cd cs) xs
{-# LINE 34 "Puzzles.curry" #-}
     Guard_OP_List d c e -> guardCons d c (d_C_free x1 x2 e cd (addCs c cs))
{-# LINE 34 "Puzzles.curry" #-}
     Fail_OP_List d info -> failCons d info
{-# LINE 39 "Puzzles.curry" #-}
nd_C_last :: OP_List C_Int -> IDSupply -> Cover -> ConstStore -> C_Int
{-# LINE 40 "Puzzles.curry" #-}
nd_C_last x1 s cd cs = let { x2 = generate (leftSupply s) cd; x3 = generate (rightSupply s) cd } in ((Curry_Prelude.d_OP_plus_plus x2 (OP_Cons x3 OP_List) cd cs) =:= x1) cd cs x3
{-# LINE 43 "Puzzles.curry" #-}
nd_C_knights :: IDSupply -> Cover -> ConstStore -> OP_List C_Bool
{-# LINE 44 "Puzzles.curry" #-}
nd_C_knights s cd cs = let { x1 = generate (leftSupply s) cd; x2 = generate (leftSupply (rightSupply s)) cd; x3 = generate (rightSupply (rightSupply s)) cd } in Curry_Prelude.d_C_cond (Curry_Prelude.d_OP_amp_amp (d_C_says x1 (Curry_Prelude.d_C_not x2 cd cs) cd cs) (Curry_Prelude.d_OP_amp_amp (d_C_says x2 (Curry_Prelude.d_C_not x3 cd cs) cd cs) (d_C_says x3 (Curry_Prelude.d_OP_amp_amp (Curry_Prelude.d_C_not x1 cd cs) (Curry_Prelude.d_C_not x2 cd cs) cd cs) cd cs) cd cs) cd cs) (OP_Cons x1 (OP_Cons x2 (OP_Cons x3 OP_List))) cd cs
{-# LINE 49 "Puzzles.curry" #-}
d_C_says :: C_Bool -> C_Bool -> Cover -> ConstStore -> C_Bool
{-# LINE 50 "Puzzles.curry" #-}
d_C_says x1 x2 cd cs = case x1 of
{-# LINE 50 "Puzzles.curry" #-}
     C_True -> x2
{-# LINE 51 "Puzzles.curry" #-}
     C_False -> Curry_Prelude.d_C_not x2 cd cs
{-# LINE 49 "Puzzles.curry" #-}
     Choice_C_Bool d i l r -> narrow d i (d_C_says l x2 cd cs) (d_C_says r x2 cd cs)
{-# LINE 49 "Puzzles.curry" #-}
     Choices_C_Bool d i xs -> narrows cs d i (\z -> d_C_says z x2 cd cs) xs
{-# LINE 49 "Puzzles.curry" #-}
     Guard_C_Bool d c e -> guardCons d c (d_C_says e x2 cd (addCs c cs))
{-# LINE 49 "Puzzles.curry" #-}
     Fail_C_Bool d info -> failCons d info
{-# LINE 54 "Puzzles.curry" #-}
nd_C_descend :: C_Int -> C_Int -> IDSupply -> Cover -> ConstStore -> C_Int
{-# LINE 55 "Puzzles.curry" #-}
nd_C_descend x1 x2 s cd cs = nd_OP__case_2 x1 x2 (Curry_Prelude.d_OP_lt_eq x1 (C_Int 0#) cd cs) s cd cs
{-# LINE 55 "Puzzles.curry" #-}
nd_OP__case_2 :: C_Int -> C_Int -> C_Bool -> IDSupply -> Cover -> ConstStore -> C_Int
{-# LINE 55 "Puzzles.curry" #-}
nd_OP__case_2 x1 x2 x3 s cd cs = case x3 of
{-# LINE 55 "Puzzles.curry" #-}
     C_True -> d_C_spin x2 cd cs
{-# LINE 55 "Puzzles.curry" #-}
     C_False -> choice (nd_C_descend (Curry_Prelude.d_OP_minus x1 (C_Int 1#) cd cs) x2 (rightSupply s) cd cs) (failCons cd defFailInfo) s cd cs
{-# LINE 54 "Puzzles.curry" #-}
     Choice_C_Bool d i l r -> narrow d i (nd_OP__case_2 x1 x2 l s cd cs) (nd_OP__case_2 x1 x2 r s cd cs)
{-# LINE 54 "Puzzles.curry" #-}
     Choices_C_Bool d i xs -> narrows cs d i (\z -> nd_OP__case_2 x1 x2 z s cd cs) xs
{-# LINE 54 "Puzzles.curry" #-}
     Guard_C_Bool d c e -> guardCons d c (nd_OP__case_2 x1 x2 e s cd (addCs c cs))
{-# LINE 54 "Puzzles.curry" #-}
     Fail_C_Bool d info -> failCons d info
{-# LINE 58 "Puzzles.curry" #-}
d_C_spin :: C_Int -> Cover -> ConstStore -> C_Int
{-# LINE 59 "Puzzles.curry" #-}
d_C_spin x1 cd cs = d_OP__case_3 x1 (Curry_Prelude.d_OP_lt_eq x1 (C_Int 0#) cd cs) cd cs
{-# LINE 59 "Puzzles.curry" #-}
d_OP__case_3 :: C_Int -> C_Bool -> Cover -> ConstStore -> C_Int
{-# LINE 59 "Puzzles.curry" #-}
d_OP__case_3 x1 x2 cd cs = case x2 of
{-# LINE 59 "Puzzles.curry" #-}
     C_True -> x1
{-# LINE 59 "Puzzles.curry" #-}
     C_False -> d_C_spin (Curry_Prelude.d_OP_minus x1 (C_Int 1#) cd cs) cd cs
{-# LINE 58 "Puzzles.curry" #-}
     Choice_C_Bool d i l r -> narrow d i (d_OP__case_3 x1 l cd cs) (d_OP__case_3 x1 r cd cs)
{-# LINE 58 "Puzzles.curry" #-}
     Choices_C_Bool d i xs -> narrows cs d i (\z -> d_OP__case_3 x1 z cd cs) xs
{-# LINE 58 "Puzzles.curry" #-}
     Guard_C_Bool d c e -> guardCons d c (d_OP__case_3 x1 e cd (addCs c cs))
{-# LINE 58 "Puzzles.curry" #-}
     Fail_C_Bool d info -> failCons d info
