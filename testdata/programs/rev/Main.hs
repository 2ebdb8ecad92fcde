{-# LANGUAGE BangPatterns #-}
-- The call graph of Morgan & Jarvis 1998, section 3.1:
--
--   main ─ a ─┬─ b ─┬─ d ─ g ─┬─ j ─ rev
--             │     └─ e ─ g  └──── rev
--             └─ c ─ f ─┬─ h ─ j ─ rev
--                       └─ i ───── rev
--
-- rev takes quadratic time and does nearly all the work; which of its callers
-- is to blame is what a flat profile cannot say. h passes j a list eleven times
-- as long as those of g and i, so nearly all of rev is reached through h.
--
-- Must show: rev above 95 % of the mutator's samples; the stack
-- rev ← j ← h ← f ← c ← a with most of them, rev ← … ← g with a few.
--
-- Every function adds to its callee's result, so that it has a return frame on
-- the stack while the callee runs. rev's recursion is one frame deep for each element
-- of the list.
--
-- usage: rev [LENGTH [ROUNDS]]
module Main where

import System.Environment (getArgs)

main :: IO ()
main = do
  args <- map read <$> getArgs
  let (len, rounds) = case args of
        [l, r] -> (l, r)
        [l] -> (l, defaultRounds)
        _ -> (220, defaultRounds)
  print (go len rounds 0)
  where
    defaultRounds = 24000
    go :: Int -> Int -> Int -> Int
    go _ 0 !acc = acc
    go len k acc = go len (k - 1) (acc + a len k)

a, b, c, d, e, f, g, h, i :: Int -> Int -> Int
{-# NOINLINE a #-}
a n k = b n k + c n k
{-# NOINLINE b #-}
b n k = d n k + e n k
{-# NOINLINE c #-}
c n k = 1 + f n k
{-# NOINLINE d #-}
d n k = 1 + g (n - n `quot` 11) k
{-# NOINLINE e #-}
e n k = 1 + g n k
{-# NOINLINE f #-}
f n k = h n k + i n k
{-# NOINLINE g #-}
g n k = j (upto k (k + short)) + total (rev (rev (rev (upto k (k + short)))))
  where short = n `quot` 11
{-# NOINLINE h #-}
h n k = 1 + j (upto k (k + n))
{-# NOINLINE i #-}
i n k = 1 + total (rev (rev (rev (rev (upto k (k + n `quot` 11))))))

{-# NOINLINE j #-}
j :: [Int] -> Int
j l = 1 + total (rev (rev (rev (rev (rev (rev l))))))

-- Quadratic by looking for each element from the list's front. It is strict and
-- allocates little, so that the time is rev's own and not that of the run-time
-- system's update frames and heap checks.
{-# NOINLINE rev #-}
rev :: [Int] -> [Int]
rev l = pick (count l - 1)
  where
    pick n
      | n < 0 = []
      | otherwise = let !x = nth n l; !xs = pick (n - 1) in x : xs
    nth :: Int -> [Int] -> Int
    nth n (x : xs) = if n == 0 then x else nth (n - 1) xs
    nth _ [] = 0
    count :: [Int] -> Int
    count [] = 0
    count (_ : xs) = 1 + count xs

-- Strict as well: a tail that was a thunk is entered by way of an indirection.
{-# NOINLINE upto #-}
upto :: Int -> Int -> [Int]
upto x y
  | x > y = []
  | otherwise = let !xs = upto (x + 1) y in x : xs

{-# NOINLINE total #-}
total :: [Int] -> Int
total = go 0
  where
    go !acc [] = acc
    go acc (x : xs) = go (acc + x) xs
