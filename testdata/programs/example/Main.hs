-- A small program of the usual kind, for a first look at a profile: it makes up a
-- text, splits it into words, counts them and which word follows which, and
-- reports.
--
-- Must show: that the time is not where the program's text is longest. Comparing
-- words in the maps leads; splitting the text comes next; Corpus.document, Words.split
-- and Count.pairs run interleaved, each on demand of the next; the additions that
-- Count.pairs puts off are made in Report.summary, which looks at them first.
--
-- usage: example [WORDS]
module Main (main) where

import qualified Corpus
import qualified Count
import qualified Report
import System.Environment (getArgs)
import qualified Words

main :: IO ()
main = do
  args <- getArgs
  let size = case args of
        n : _ -> read n
        [] -> 250000
      counts = Count.single (Words.split (Corpus.document size))
      pairs = Count.pairs (Words.split (Corpus.document size))
  putStr (Report.summary counts pairs)
