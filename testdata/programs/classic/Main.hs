{-# LANGUAGE BangPatterns #-}
-- Small programs of the kind that profilers of Haskell are compared by, after the
-- names in figure 6 of Wortmann & Duke (2013), written anew.
--
-- Must show: nothing in particular; the cost of profiling is measured with them.
--
-- usage: classic NAME [SIZE]
module Main (main) where

import qualified Data.List as List
import qualified Data.Map.Strict as M
import System.Environment (getArgs)

main :: IO ()
main = do
  args <- getArgs
  case args of
    [name] | Just (run, size) <- lookup name programs -> putStrLn (run size)
    [name, size] | Just (run, _) <- lookup name programs -> putStrLn (run (read size))
    _ -> error ("classic: name one of " ++ unwords (map fst programs))

programs :: [(String, (Int -> String, Int))]
programs =
  [ ("binary-trees", (show . binaryTrees, 24))
  , ("exp3", (show . exp3, 14))
  , ("fannkuch", (show . fannkuch, 9))
  , ("integer", (show . integer, 100000))
  , ("k-nucleotide", (show . kNucleotide, 80000))
  , ("lcss", (show . lcss, 1500))
  , ("n-body", (show . nBody, 20000000))
  , ("pidigits", (piDigits, 6000))
  , ("primes", (show . primes, 220000))
  , ("spectral-norm", (show . spectralNorm, 1900))
  ]

-- Trees that are built and walked at once.
data Tree = Leaf | Node Tree Tree

binaryTrees :: Int -> Int
binaryTrees n = sum [nodes (tree d i) | d <- [4, 6 .. n], i <- [1 .. 2 ^ (n - d)]]
  where
    tree :: Int -> Int -> Tree
    tree 0 _ = Leaf
    tree d i = Node (tree (d - 1) (2 * i)) (tree (d - 1) (2 * i + 1))
    nodes Leaf = 1
    nodes (Node l r) = 1 + nodes l + nodes r :: Int

-- 3 ^ n in unary numbers.
data Nat = Z | S Nat

exp3 :: Int -> Int
exp3 n = toInt (power (fromInt 3) (fromInt n))
  where
    fromInt 0 = Z
    fromInt k = S (fromInt (k - 1 :: Int))
    toInt = go 0 where { go !acc Z = acc; go acc (S m) = go (acc + 1 :: Int) m }
    plus Z m = m
    plus (S k) m = S (plus k m)
    times Z _ = Z
    times (S k) m = plus m (times k m)
    power _ Z = S Z
    power x (S k) = times x (power x k)

-- The most prefix reversals that any permutation needs.
fannkuch :: Int -> Int
fannkuch n = List.foldl' max 0 (map (flips 0) (permutations' [1 .. n]))
  where
    flips !k p@(x : _) | x /= 1 = flips (k + 1) (reverse (take x p) ++ drop x p)
    flips k _ = k :: Int
    permutations' [] = [[]]
    permutations' xs = [x : rest | (x, others) <- picks xs, rest <- permutations' others]
    picks [] = []
    picks (x : xs) = (x, xs) : [(y, x : ys) | (y, ys) <- picks xs]

-- Arithmetic with numbers that do not fit a word.
integer :: Int -> Integer
integer n = List.foldl' (\acc k -> (acc * fromIntegral k + 1) `mod` modulus) 1 [1 .. n * 40]
  where modulus = 2 ^ (521 :: Int) - 1

-- Counts of all words of eight letters in a sequence.
kNucleotide :: Int -> Int
kNucleotide n = M.foldl' max 0 (List.foldl' (\m w -> M.insertWith (+) w 1 m) M.empty windows)
  where
    windows = take n (zipWith const (List.tails letters) [1 .. n]) `seq` map (take 8) (take n (List.tails letters))
    letters = map ("ACGT" !!) (go (42 :: Int))
    go s = let s' = (s * 3877 + 29573) `mod` 139968 in (s' * 4 `div` 139968) : go s'

-- The length of the longest common subsequence.
lcss :: Int -> Int
lcss n = last (List.foldl' row (replicate (n + 1) 0) xs)
  where
    xs = [(k * 7919) `mod` 251 | k <- [1 .. n]]
    ys = [(k * 104729) `mod` 241 | k <- [1 .. n]]
    row prev x = scanl step 0 (zip3 ys prev (tail prev))
      where step left (y, diagonal, up) = if x == y then diagonal + 1 else max left up

-- Two bodies around a third.
nBody :: Int -> Double
nBody steps = go steps 1 0 0 1 0.3 0.9
  where
    go :: Int -> Double -> Double -> Double -> Double -> Double -> Double -> Double
    go 0 !x !y !vx !vy !z !w = x + y + vx + vy + z + w
    go k x y vx vy z w = go (k - 1) (x + dt * vx') (y + dt * vy') vx' vy' (z + dt * w) (w - dt * z / (1 + sin (x * y)))
      where
        r = sqrt (x * x + y * y + 0.01)
        vx' = vx - dt * x / (r * r * r)
        vy' = vy - dt * y / (r * r * r)
        dt = 0.001

-- Gibbons's spigot for the digits of pi.
piDigits :: Int -> String
piDigits n = concatMap show (take n (go (1, 0, 1) 1))
  where
    go :: (Integer, Integer, Integer) -> Integer -> [Integer]
    go (q, r, t) k
      | 4 * q + r - t < d * t = d : go (10 * q, 10 * (r - d * t), t) k
      | otherwise = go (q * k, (2 * q + r) * (2 * k + 1), t * (2 * k + 1)) (k + 1)
      where d = (3 * q + r) `div` t

primes :: Int -> Int
primes n = sieve !! n
  where
    sieve = 2 : filter isPrime [3, 5 ..]
    isPrime k = all (\p -> k `mod` p /= 0) (takeWhile (\p -> p * p <= k) sieve)

spectralNorm :: Int -> Double
spectralNorm n = sqrt (dot u v / dot v v)
  where
    (u, v) = iterate (\(x, _) -> let y = ata x in (ata y, y)) (replicate n 1, replicate n 1) !! 4
    ata = mul flip . mul id
    mul f x = [sum (zipWith (*) [entry f i j | j <- [0 ..]] x) | i <- [0 .. n - 1]]
    entry :: ((Int -> Int -> Double) -> Int -> Int -> Double) -> Int -> Int -> Double
    entry f = f (\i j -> 1 / fromIntegral ((i + j) * (i + j + 1) `div` 2 + i + 1))
    dot x y = sum (zipWith (*) x y)
