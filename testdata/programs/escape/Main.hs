-- Escapes a byte string with a builder, in two ways.
--
-- fold: a strict left fold appends one small builder after another. What the fold
-- forces at each step is a builder, a function; bytes are written only when the last
-- one runs. So the whole input becomes a chain of closures first, which the garbage
-- collector copies again and again.
-- concat: one builder over the list of bytes, which is made as it is written.
--
-- Must show: with fold, more samples in the garbage collector than with concat, and
-- the fold's allocation at the appending in Main.chained.
--
-- usage: escape [fold|concat [BYTES [ROUNDS]]]
module Main (main) where

import qualified Data.ByteString as B
import qualified Data.ByteString.Builder as Builder
import qualified Data.ByteString.Lazy as Lazy
import Data.Word (Word8)
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  let (way, bytes, rounds) = case args of
        [w, b, r] -> (w, read b, read r)
        [w, b] -> (w, read b, 10)
        [w] -> (w, 1000000, 10)
        _ -> ("fold", 1000000, 10) :: (String, Int, Int)
      escape = if way == "concat" then streamed else chained
  print (sum [written escape (text (bytes + r)) | r <- [1 .. rounds]])

-- | How long the escaped text is.
written :: (B.ByteString -> Builder.Builder) -> B.ByteString -> Int
written escape = fromIntegral . Lazy.length . Builder.toLazyByteString . escape

{-# NOINLINE chained #-}
chained :: B.ByteString -> Builder.Builder
chained = B.foldl' append mempty
  where
    append out byte = out <> escaped byte

{-# NOINLINE streamed #-}
streamed :: B.ByteString -> Builder.Builder
streamed = mconcat . map escaped . B.unpack

escaped :: Word8 -> Builder.Builder
escaped 34 = Builder.string7 "\\\""
escaped 92 = Builder.string7 "\\\\"
escaped byte
  | byte < 32 = Builder.string7 "\\x" <> Builder.word8HexFixed byte
  | otherwise = Builder.word8 byte

text :: Int -> B.ByteString
text n = fst (B.unfoldrN n (\k -> Just (fromIntegral (k * 7 `mod` 128), k + 1)) n)
