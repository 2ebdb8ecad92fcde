package hssource

import (
	"strings"
	"testing"
)

const sample = `{-# LANGUAGE BangPatterns #-}
{- a comment
foo = not code
-}
module Data.Sample (rev, (<+>)) where

import Data.List

-- | Reverses.
rev :: [a] -> [a]
rev []     = []
rev (x:xs) =
  rev xs ++ [x]   -- slow

#if 1
strict !x !y = x + y
#endif

a <+> b
  | a > b = a
  | otherwise = b

x ` + "`plus`" + ` y = x + y

(+++) p q = p

(l, r) = (1, 2)

data Shape = Circle Double
           | Rect { w, h :: Double }
  deriving (Show, Eq)

class HasArea a where
  area :: a -> Double
  area _ = 0

instance (Show a, Ord a) => HasArea (Tree a) where
  area (Leaf x) = 1
    where k = 2
  area t = go t
  {-# INLINE scale #-}
  scale k t = t

s' = "a string with -- and {- inside \
     \ and a gap"
c = '"'
d = '\''
main :: IO ()
main = do
  print 1

  print 2
`

// Declarations are found by layout, with the names that they declare.
func TestParse(t *testing.T) {
	m := Parse(sample, "Sample.hs")
	if m.Name != "Data.Sample" {
		t.Errorf("module is named %q", m.Name)
	}
	lines := strings.Split(sample, "\n")
	for _, c := range []struct{ text, want string }{
		{"rev :: [a]", "rev"}, {"rev xs ++", "rev"}, {"strict !x", "strict"}, {"| a > b", "<+>"},
		{"`plus`", "plus"}, {"(+++) p", "+++"}, {"(l, r)", "l,r"}, {"deriving (Show", "(data Shape)"},
		{"area _ = 0", "area (class HasArea a)"}, {"where k = 2", "area (instance HasArea (Tree a))"},
		{"area t = go", "area (instance HasArea (Tree a))"}, {"scale k t", "scale (instance HasArea (Tree a))"},
		{"and a gap", "s'"}, {"c = '", "c"}, {"d = '", "d"}, {"print 2", "main"},
	} {
		at := 0
		for i, l := range lines {
			if strings.Contains(l, c.text) {
				at = i + 1
			}
		}
		if got, ok := m.At(at); !ok || got != c.want {
			t.Errorf("line %d %q is in %q, %v; want %q", at, c.text, got, ok, c.want)
		}
	}
	if got, ok := m.At(3); ok {
		t.Errorf("a comment is in %q", got)
	}
	if first, last, _ := m.Extent(11); first != 10 || last != 13 {
		t.Errorf("rev is in lines %d to %d; want 10 to 13", first, last)
	}
}

// Both styles of literate Haskell are read.
func TestLiterate(t *testing.T) {
	for _, text := range []string{
		"Text\n\n> module A where\n> f x =\n>   x + 1\n\nmore\n\n> g = f 2\n",
		"\\begin{code}\nmodule A where\nf x =\n  x + 1\n\\end{code}\nf in text\n\\begin{code}\ng = f 2\n\\end{code}\n",
	} {
		m := Parse(text, "A.lhs")
		if !m.Declares("f") || !m.Declares("g") || m.Name != "A" || len(m.Decls) != 3 {
			t.Errorf("%q gives %+v", text, m)
		}
	}
}

// Declarations of any text are in order and do not overlap.
func FuzzParse(f *testing.F) {
	f.Add(sample, "x.hs")
	f.Add("> f = 'a\n{-", "x.lhs")
	f.Add("x\t= \"\\", "x.hs")
	f.Fuzz(func(t *testing.T, text, path string) {
		m := Parse(text, path)
		last := 0
		for i := range m.Decls {
			d := &m.Decls[i]
			if d.Line <= last || d.Last < d.Line {
				t.Fatalf("declarations overlap: %+v", m.Decls)
			}
			last = d.Last
		}
		m.At(1)
		m.Extent(2)
	})
}
