-- A program of the profiling way that says of its own accord what cost-centre
-- stack it runs on: one in a circle, one without end, one at no memory, one of
-- garbage, and one whose centre has no names.
--
-- Must show: all its samples, with the reason why their stack is not known, and
-- no effect on the honest ones.
--
-- usage: liar [MILLISECONDS], of each lie
module Main (main) where

import Foreign.C.Types (CInt (..))
import System.Environment (getArgs)

foreign import ccall unsafe "lie" lie :: CInt -> CInt -> IO ()

main :: IO ()
main = do
  args <- map read <$> getArgs
  let ms = case args of
        [n] -> n
        _ -> 100
  mapM_ (`lie` ms) [0 .. 5]
