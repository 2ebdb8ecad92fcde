-- A program that says of its own run-time system what is not so, in its memory, for whoever looks at it from outside.
--
-- Must show: nothing in particular of itself, and no effect on what is measured of other programs.
--
-- usage: pretends counters|capabilities|stacks|structures|mappings|maps|files|execs|labels [FILE…] +RTS -V0
--                                it writes a line when it begins, and goes on until it is killed
module Main (main) where

import Control.Concurrent (forkIO, myThreadId, newEmptyMVar, takeMVar, yield)
import Control.Exception (evaluate)
import Control.Monad (forM_, forever)
import Foreign.C.String (CString, withCString)
import Foreign.C.Types (CInt (..))
import GHC.Conc (labelThread)
import System.Environment (getArgs, getExecutablePath)
import System.IO
import System.Posix.Process (executeFile)

foreign import ccall unsafe "counters" counters :: IO ()
foreign import ccall unsafe "capabilities_lie" capabilities :: IO ()
foreign import ccall unsafe "stacks" stacks :: IO ()
foreign import ccall unsafe "structures" structures :: IO ()
foreign import ccall unsafe "mappings" mappings :: CString -> CInt -> IO ()
foreign import ccall unsafe "map_file" mapFile :: CString -> IO ()
foreign import ccall unsafe "spin" spin :: CInt -> IO ()

main :: IO ()
main = do
  args <- getArgs
  exe <- getExecutablePath
  let begin = putStrLn "ready" >> hFlush stdout
  case args of
    -- The counters lie while the program allocates and collects.
    ["counters"] -> begin >> forever (counters >> evaluate (sum [1 .. 100000 :: Integer]))
    ["capabilities"] -> begin >> forever capabilities
    ["stacks"] -> begin >> forever (stacks >> yield)
    ["structures"] -> begin >> structures
    -- One file is mapped again and again: at other addresses each time, or all remain.
    ["mappings"] -> begin >> withCString exe (`mappings` 0)
    ["maps"] -> begin >> withCString exe (`mappings` 1)
    -- Files that hold code of some kind.
    "files" : files -> begin >> forM_ files (`withCString` mapFile) >> forever (spin 10)
    ["execs"] -> begin >> spin 5 >> counters >> executeFile exe False ["execs", "+RTS", "-V0"] Nothing
    ["labels"] -> do
      begin
      never <- newEmptyMVar
      forM_ [1 .. 8 :: Int] $ \n -> forkIO $ do
        me <- myThreadId
        labelThread me (concat (replicate 20000 ("\ESC]0;owned\a\ESC[2J\nccagent: all is well" ++ show n ++ "\x202e")))
        takeMVar never
      forever (yield >> spin 1 >> evaluate (sum [1 .. 10000 :: Integer]))
    _ -> error "usage: pretends counters|capabilities|stacks|structures|mappings|maps|files|execs|labels"
