-- A text made up from a seed: the same one every time.
module Corpus (document) where

import Data.Bits (shiftR, xor)
import Data.Char (toUpper)
import Data.Word (Word64)

-- | So many words, separated by spaces and now and then by the end of a sentence.
document :: Int -> String
document size = sentences (take size (map (word . rank) (randoms 42)))

sentences :: [String] -> String
sentences [] = []
sentences ws = case splitAt 11 ws of
  (first, rest) -> capital (unwords first) ++ ". " ++ sentences rest

capital :: String -> String
capital [] = []
capital (c : cs) = toUpper c : cs

-- A few ranks are frequent and most are rare, as words are: each bound is drawn
-- below another.
rank :: Word64 -> Int
rank r = fromIntegral (foldr below 5000 [44, 30, 15, 0])
  where
    below bits bound = (r `shiftR` bits) `mod` (bound + 1)

-- Syllables spell the rank, so that frequent words are short.
word :: Int -> String
word n
  | n < length syllables = syllables !! n
  | otherwise = syllables !! (n `mod` length syllables) ++ word (n `div` length syllables)

syllables :: [String]
syllables = ["ka", "ro", "mi", "te", "lun", "sor", "ve", "ni", "dal", "ost", "em"]

randoms :: Word64 -> [Word64]
randoms = drop 1 . iterate step
  where
    step x0 =
      let x1 = x0 `xor` (x0 * 4294967296 + 1442695040888963407)
          x2 = x1 `xor` (x1 `shiftR` 29)
      in x2 * 6364136223846793005 + 1
