-- A small program of the usual kind, for a first look at a profile: it makes up a
-- text, splits it into words, numbers them, counts them and which follows which, and
-- reports.
--
-- Must show: Dictionary.find first of the program's own code; making and splitting the
-- text, which run interleaved, each on demand of the next; Corpus.document and
-- Corpus.rank with the same samples, since they were fused; the library's maps by name;
-- the collector with its own share.
--
-- usage: example [WORDS]
module Main (main) where

import qualified Corpus
import qualified Count
import qualified Dictionary
import qualified Report
import System.Environment (getArgs)
import qualified Words

main :: IO ()
main = do
  args <- getArgs
  let size = case args of
        n : _ -> read n
        [] -> 1500000
      numbers = Dictionary.numbers (Words.split (Corpus.document size))
  putStr (Report.summary (Count.single numbers) (Count.pairs 100 numbers))
