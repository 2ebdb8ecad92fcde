-- What Curry_Puzzles.hs is written after, by hand in the style of the compiler KiCS2.
module Puzzles where

-- x somewhere in a list
insert :: a -> [a] -> [a]
insert x []     = [x]
insert x (y:ys) = x : y : ys ? y : insert x ys

-- any order of a list
perm :: [a] -> [a]
perm []     = []
perm (x:xs) = insert x (perm xs)

-- whether a list ascends
sorted :: [Int] -> Bool
sorted []       = True
sorted (x:xs)   = case xs of []  -> True
                             y:_ -> x <= y && sorted xs

-- the order that ascends
permSort :: [Int] -> [Int]
permSort xs | sorted ys = ys where ys = perm xs

-- columns of n queens, by row
queens :: Int -> [Int]
queens n | safe qs = qs where qs = perm [1 .. n]

-- whether no queen takes another
safe :: [Int] -> Bool
safe []     = True
safe (q:qs) = free q 1 qs && safe qs

-- whether a queen takes none of those from a distance on
free :: Int -> Int -> [Int] -> Bool
free _ _ []     = True
free q d (p:ps) = not (p - q == d) && not (q - p == d) && free q (d + 1) ps

-- the last element, as the y that the list ends with
last :: [Int] -> Int
last xs | ys ++ [y] =:= xs = y where ys, y free

-- which of three are knights, who say what is true; the others are knaves
knights :: [Bool]
knights | says a (not b) && says b (not c) && says c (not a && not b)
        = [a, b, c]
  where a, b, c free

-- what one says holds if and only if he is a knight
says :: Bool -> Bool -> Bool
says True  what = what
says False what = not what

-- the work of n steps below so many choices, of each of which the first alternative is tried
descend :: Int -> Int -> Int
descend d n = if d <= 0 then spin n else descend (d - 1) n ? failed

-- n steps
spin :: Int -> Int
spin n = if n <= 0 then n else spin (n - 1)
