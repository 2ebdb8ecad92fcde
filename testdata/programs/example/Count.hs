-- How often things occur.
module Count (single, pairs) where

import qualified Data.IntMap.Lazy as Lazy
import qualified Data.IntMap.Strict as Strict
import qualified Data.List as List

-- | How often each number occurs. Adds at once.
single :: [Int] -> Strict.IntMap Int
single = List.foldl' (\m n -> Strict.insertWith (+) n 1 m) Strict.empty

-- | How often each number up to the limit follows each other; the pair (a, b) has the
-- key a·2²⁰ + b. The map is lazy in its values: a sum stays a chain of additions until
-- someone looks at it.
pairs :: Int -> [Int] -> Lazy.IntMap Int
pairs limit ns = List.foldl' (\m key -> Lazy.insertWith (+) key 1 m) Lazy.empty keys
  where
    keys = [a * 1048576 + b | (a, b) <- zip ns (drop 1 ns), a <= limit, b <= limit]
