module Main (main) where

-- A program whose Core has most of what Core can have.

import qualified Data.Map.Strict as M
import Data.List (foldl')

data Shape = Circle !Double | Square { side :: !Double }

fac :: Integer -> Integer
fac n = foldr (*) 1 [1..n]

area :: Shape -> Double
area (Circle r) = pi * r * r
area (Square s) = s * s

count :: [Int] -> M.Map Int Int
count = foldl' step M.empty
  where
    step m k = M.insertWith (+) (k `mod` 17) 1 m

class Pretty a where
  pretty :: a -> String
instance Pretty Shape where
  pretty s = "shape <" ++ show (area s) ++ ">"

(<+>) :: Int -> Int -> Int
x <+> y = if x > 3 then y <+> (x - 1) else x + y

main :: IO ()
main = do
  print (fac 200)
  putStrLn (pretty (Square 2))
  print (count [1 .. 100000])
  print (5 <+> 7)
  putStrLn (concatMap quote "a\"b")
  print (joined 3 4)

quote :: Char -> String
quote '"' = "'\\\"("
quote c | c == '\'' = "src<not a note>"
        | otherwise = [c, '(']
{-# NOINLINE quote #-}

joined :: Int -> Int -> Int
joined a b =
  let f x = case x of { 0 -> a + b; _ -> x * a * b * 7 + b }
      {-# NOINLINE f #-}
  in if a > b then f (a - b) + f 3 else case b of
       3 -> f a
       _ | even a -> f b
         | otherwise -> loop a 0
  where
    loop 0 acc = acc
    loop n acc = loop (n - 1) (acc + n * b)
