-- Words to numbers: a ternary search tree.
module Dictionary (numbers) where

import Data.List (mapAccumL)

data Tree
  = Empty
  | Node !Char !Int !Tree !Tree !Tree -- the word's number if it ends here, else 0; less, next, more

-- | The words' numbers, in order of first appearance from 1 on.
numbers :: [String] -> [Int]
numbers = snd . mapAccumL step (1, Empty)
  where
    step (new, tree) w = case find w tree of
      0 -> ((new + 1, insert new w tree), new)
      old -> ((new, tree), old)

-- | 0 if the word is new.
find :: String -> Tree -> Int
find _ Empty = 0
find [] _ = 0
find word@(c : cs) (Node d n less next more)
  | c < d = find word less
  | c > d = find word more
  | null cs = n
  | otherwise = find cs next

insert :: Int -> String -> Tree -> Tree
insert _ [] tree = tree
insert new (c : cs) Empty = insert new (c : cs) (Node c 0 Empty Empty Empty)
insert new word@(c : cs) (Node d n less next more)
  | c < d = Node d n (insert new word less) next more
  | c > d = Node d n less next (insert new word more)
  | null cs = Node d new less next more
  | otherwise = Node d n less (insert new cs next) more
