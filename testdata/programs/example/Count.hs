-- Words to numbers.
module Count (single, pairs) where

import qualified Data.List as List
import qualified Data.Map.Lazy as Lazy
import qualified Data.Map.Strict as Strict

-- | How often each word occurs. Adds at once.
single :: [String] -> Strict.Map String Int
single = List.foldl' (\m w -> Strict.insertWith (+) w 1 m) Strict.empty

-- | How often each word follows each other. The map is lazy in its values: a sum
-- stays a chain of additions until someone looks at it.
pairs :: [String] -> Lazy.Map (String, String) Int
pairs ws = List.foldl' (\m p -> Lazy.insertWith (+) p 1 m) Lazy.empty (zip ws (drop 1 ws))
