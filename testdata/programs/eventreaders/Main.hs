{-# OPTIONS_GHC -Wno-name-shadowing #-}
{-# LANGUAGE LambdaCase #-}
-- | What other tools take from an eventlog, through the library that they read it
-- with, in the order in which they take it.
--
-- usage: eventreaders TOOL FILE
module Main (main) where

import Control.Monad (replicateM, when)
import Data.Binary.Get
import Data.Bits ((.|.))
import qualified Data.ByteString as B
import qualified Data.ByteString.Lazy as BL
import Data.Foldable (foldl')
import Data.List (intercalate, sortOn)
import qualified Data.Map.Strict as M
import qualified Data.Text as T
import qualified Data.Text.Encoding as T
import qualified Data.Vector.Unboxed as V
import Data.Word
import GHC.RTS.Events (Data (..), Event (..), EventInfo (..), EventLog (..), readEventLogFromFile)
import System.Environment (getArgs)
import System.IO

main :: IO ()
main = do
  hSetEncoding stdout utf8
  [tool, file] <- getArgs
  events <- either error (\(EventLog _ (Data es)) -> es) <$> readEventLogFromFile file
  mapM_ putStrLn $ case tool of
    "hs-speedscope" -> speedscope events
    "eventlog2html" -> html events
    "ghc-stack-profiler" -> stackProfiler events
    _ -> error "unknown tool"

-- | Events of five kinds, by time. Cost centres are numbered by their place from
-- the last definition on, and not by their ids; the first seven are left out, and so
-- are samples of one that is not among them alone.
speedscope :: [Event] -> [String]
speedscope es =
  [ "program\t" ++ T.unpack p | ProgramArgs _ (p : _) <- specs ]
    ++ [ "interval\t" ++ show n | ProfBegin n <- specs ]
    ++ [ "sample\t" ++ show cap ++ "\t" ++ path st
       | ProfSampleCostCentre cap _ _ v <- specs
       , let st = V.toList v
       , not (alone st)
       ]
  where
    specs = map evSpec (sortOn evTime es)
    names = reverse (drop 7 [ T.unpack l | HeapProfCostCentre _ l _ _ _ <- specs ])
    byNumber = M.fromList (zip [1 :: Word32 ..] names)
    alone = \case [k] -> fromIntegral k >= length names; _ -> False
    path st = intercalate ";" [ M.findWithDefault "?" k byNumber | k <- reverse st ]

-- | Events as they stand in the file: a sample belongs to the census that began
-- last, and the chart ends with the file's last event.
html :: [Event] -> [String]
html es = reverse out ++ ["end\t" ++ show end]
  where
    (out, end) = foldl' step ([], 0) es
    step (o, _) (Event t e _) = (line t e ++ o, t)
    line t = \case
      HeapProfBegin {heapProfBreakdown = b} -> ["mode\t" ++ show b]
      HeapProfSampleBegin {} -> ["census\t" ++ show t]
      HeapProfSampleString _ n l -> ["band\t" ++ show n ++ "\t" ++ T.unpack l]
      ProgramArgs _ as -> ["program\t" ++ T.unpack (head as)]
      _ -> []

-- | Binary messages as they stand in the file. A stack in several messages is one.
stackProfiler :: [Event] -> [String]
stackProfiler es = go M.empty M.empty [] [ B.copy m | UserBinaryMessage m <- map evSpec es ]
  where
    go _ _ _ [] = []
    go strings locs part (m : ms) = case runGet message (BL.fromStrict m) of
      Text i s -> go (M.insert i s strings) locs part ms
      Loc i file -> go strings (M.insert i (M.findWithDefault "?" file strings) locs) part ms
      Stack final cap tid items
        | final -> ("stack\t" ++ show cap ++ "\t" ++ show tid ++ "\t" ++ intercalate ";" (part ++ named)) : go strings locs [] ms
        | otherwise -> go strings locs (part ++ named) ms
        where
          named = [ M.findWithDefault "?" s strings ++ maybe "" (\l -> "@" ++ M.findWithDefault "?" l locs) loc | (s, loc) <- items ]

data Message
  = Text Word64 String
  | Loc Word64 Word64
  | Stack Bool Word32 Word32 [(Word64, Maybe Word64)]

message :: Get Message
message = do
  tag <- getWord16be
  m <- case tag of
    0xffcc -> Text <$> getWord64be <*> (T.unpack . T.decodeUtf8 <$> (getWord16be >>= getByteString . fromIntegral))
    0xffcd -> Loc <$> getWord64be <* getWord32be <* getWord32be <*> getWord64be
    _ | tag .|. 1 == 0xffcb -> do
      Stack (tag == 0xffca) <$> getWord32be <*> getWord32be <*> (getWord16be >>= \n -> replicateM (fromIntegral n) item)
    _ -> fail "a message of another kind"
  whole <- isEmpty
  when (not whole) (fail "bytes after a message")
  pure m

item :: Get (Word64, Maybe Word64)
item = getWord8 >>= \case
  2 -> (\s -> (s, Nothing)) <$> getWord64be
  3 -> (\s l -> (s, Just l)) <$> getWord64be <*> getWord64be
  n -> fail ("an entry of kind " ++ show n)
