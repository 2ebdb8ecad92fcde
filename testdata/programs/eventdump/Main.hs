-- | Shows an eventlog as the ghc-events library reads it, for comparison with
-- our own reader.
--
-- usage: eventdump FILE
--
-- For each event in the file's order: time, capability (-1 = none), and the
-- event as the library shows it, with tabs between. A line that begins with
-- "error" tells why the library stopped.
module Main (main) where

import qualified Data.ByteString.Lazy as BL
import GHC.RTS.Events (Event (..))
import GHC.RTS.Events.Incremental
import System.Environment (getArgs)
import System.IO

main :: IO ()
main = do
  args <- getArgs
  hSetEncoding stdout utf8
  case args of
    [file] -> BL.readFile file >>= dump
    _ -> error "usage: eventdump FILE"

dump :: BL.ByteString -> IO ()
dump bytes = case readHeader bytes of
  Left problem -> putStrLn ("error\t" ++ problem)
  Right (header, rest) -> do
    let (events, problem) = readEvents header rest
    mapM_ (putStrLn . line) events
    maybe (pure ()) (putStrLn . ("error\t" ++)) problem

line :: Event -> String
line e = show (evTime e) ++ "\t" ++ maybe "-1" show (evCap e) ++ "\t" ++ show (evSpec e)
