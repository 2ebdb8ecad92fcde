-- Text to words.
module Words (split) where

import Data.Char (isAlpha, toLower)

-- | The text's words in lower case, on demand.
split :: String -> [String]
split text = case skip text of
  "" -> []
  start -> case word start of
    (w, rest) -> w : split rest

skip :: String -> String
skip (c : cs) | not (isAlpha c) = skip cs
skip cs = cs

word :: String -> (String, String)
word (c : cs) | isAlpha c = case word cs of
  (w, rest) -> (toLower c : w, rest)
word cs = ("", cs)
