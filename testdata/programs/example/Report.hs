-- Numbers to text.
module Report (summary) where

import qualified Data.IntMap as IntMap
import qualified Data.List as List
import Data.Ord (Down (..), comparing)

-- | The counts of the most frequent words and pairs, and how evenly each is spread.
summary :: IntMap.IntMap Int -> IntMap.IntMap Int -> String
summary singles pairs = unlines [part "words" singles, part "pairs" pairs]
  where
    part name m = unwords $
      [name, show (IntMap.size m) ++ ",", "entropy", bits (entropy m) ++ ",", "most frequent:"] ++ map show (top 5 m)

top :: Int -> IntMap.IntMap Int -> [Int]
top n = take n . List.sortBy (comparing Down) . IntMap.elems

-- | Shannon's, in bits.
entropy :: IntMap.IntMap Int -> Double
entropy m = negate (List.foldl' (\acc n -> acc + term (fromIntegral n / total)) 0 (IntMap.elems m))
  where
    total = fromIntegral (sum (IntMap.elems m))
    term p = p * logBase 2 p

bits :: Double -> String
bits x = show (fromIntegral (round (x * 1000) :: Int) / 1000 :: Double)
