-- Text to words.
module Words (split) where

import Data.Char (isAlpha, toLower)

-- | The text's words in lower case, on demand.
split :: String -> [String]
split text = case dropWhile (not . isAlpha) text of
  "" -> []
  start -> case span isAlpha start of
    (w, rest) -> map toLower w : split rest
