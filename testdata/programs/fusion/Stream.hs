{-# LANGUAGE RankNTypes #-}
-- A producer and a consumer that a rewrite rule fuses, after foldr/build, as a
-- library in a module of its own that is compiled with source notes.
module Stream (upTo, squares, consume) where

{-# INLINE [1] consume #-}
consume :: (a -> b -> b) -> b -> [a] -> b
consume k z = go
  where
    go [] = z
    go (x : xs) = x `k` go xs

{-# INLINE [1] produce #-}
produce :: (forall b. (a -> b -> b) -> b -> b) -> [a]
produce g = g (:) []

{-# RULES
"consume/produce" forall k z (g :: forall b. (a -> b -> b) -> b -> b).
  consume k z (produce g) = g k z
  #-}

{-# INLINE upTo #-}
upTo :: Int -> [Int]
upTo n = produce (\cons nil ->
  let from i
        | i > n = nil
        | otherwise = i `cons` from (i + 1)
  in from 1)

{-# INLINE squares #-}
squares :: [Int] -> [Int]
squares xs = produce (\cons nil -> consume (\x rest -> (x * x) `cons` rest) nil xs)
