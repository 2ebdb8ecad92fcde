{-# LANGUAGE BangPatterns #-}
-- Publishes what it is called as OpenTelemetry's process context, while it runs, and then computes.
--
-- Must show: service published-api, and the label team = pay, from the first piece that begins afterwards.
--
-- usage: publishes
module Main where

import Data.Char (ord)
import Foreign
import Foreign.C

foreign import ccall unsafe "mmap"
  c_mmap :: Ptr () -> CSize -> CInt -> CInt -> CInt -> CLong -> IO (Ptr Word8)

foreign import ccall unsafe "memfd_create"
  c_memfd :: CString -> CUInt -> IO CInt

foreign import ccall unsafe "ftruncate"
  c_ftruncate :: CInt -> CLong -> IO CInt

main :: IO ()
main = do
  print (work 20000000 1) -- it is sampled before it says what it is called
  publish (attribute "service.name" "published-api" ++ attribute "team" "pay")
  print (work 1000000000000 1)

work :: Int -> Word64 -> Word64
work 0 !x = x
work n x = work (n - 1) ((x * 2862933555777941757 + 3037000493) `xor` 5)

-- A field of a message of protocol buffers that has bytes, at most 127.
field :: Word8 -> [Word8] -> [Word8]
field n bytes = (n * 8 + 2) : fromIntegral (length bytes) : bytes

-- An attribute of a Resource.
attribute :: String -> String -> [Word8]
attribute key value = field 1 (field 1 (text key) ++ field 2 (field 1 (text value)))

text :: String -> [Word8]
text = map (fromIntegral . ord)

publish :: [Word8] -> IO ()
publish message = do
  fd <- withCString "OTEL_CTX" (`c_memfd` 0)
  _ <- throwErrnoIfMinus1 "ftruncate" (c_ftruncate fd 4096)
  page <- c_mmap nullPtr 4096 3 2 fd 0 -- readable and writable, private
  pokeArray (page `plusPtr` 32) message
  pokeByteOff page 8 (2 :: Word32)
  pokeByteOff page 12 (fromIntegral (length message) :: Word32)
  pokeByteOff page 16 (1 :: Word64)
  pokeByteOff page 24 (page `plusPtr` 32)
  pokeArray page (text "OTEL_CTX") -- last: from now on it is whole
