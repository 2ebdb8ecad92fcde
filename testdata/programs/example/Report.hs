-- Numbers to text.
module Report (summary) where

import qualified Data.List as List
import qualified Data.Map as Map
import Data.Ord (Down (..), comparing)

-- | The most frequent words and pairs, and how evenly each is spread.
summary :: Map.Map String Int -> Map.Map (String, String) Int -> String
summary words' pairs = unlines $
  ["words: " ++ show (Map.size words') ++ ", entropy " ++ bits (entropy words')]
    ++ map entry (top 5 words')
    ++ ["pairs: " ++ show (Map.size pairs) ++ ", entropy " ++ bits (entropy pairs)]
    ++ map entry [(a ++ " " ++ b, n) | ((a, b), n) <- top 5 pairs]
  where
    entry (name, n) = "  " ++ show n ++ " " ++ name

top :: Int -> Map.Map k Int -> [(k, Int)]
top n = take n . List.sortBy (comparing (Down . snd)) . Map.toList

-- | Shannon's, in bits.
entropy :: Map.Map k Int -> Double
entropy m = negate (List.foldl' (\acc n -> acc + term (fromIntegral n / total)) 0 (Map.elems m))
  where
    total = fromIntegral (sum (Map.elems m))
    term p = p * logBase 2 p

bits :: Double -> String
bits x = show (fromIntegral (round (x * 1000) :: Int) / 1000 :: Double)
