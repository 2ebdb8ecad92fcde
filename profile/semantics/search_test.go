package semantics

import (
	"errors"
	"testing"
)

// The programs of testdata/programs/curry in the semantics' language, with numbers of Z and S.
const puzzles = `
not(a) = fcase a of { True -> False; False -> True };
and(a, b) = fcase a of { True -> b; False -> False };
says(a, what) = fcase a of { True -> what; False -> not(what) };
cond(a, x) = fcase a of { True -> x };
knights() = let a = a, b = b, c = c,
	nb = not(b), s1 = says(a, nb), nc = not(c), s2 = says(b, nc), na = not(a), nb2 = not(b), both = and(na, nb2), s3 = says(c, both),
	s23 = and(s2, s3), all = and(s1, s23), t = Nil, t1 = Cons c t, t2 = Cons b t1, t3 = Cons a t2 in cond(all, t3);
insert(x, l) = fcase l of { Nil -> let n = Nil in Cons x n;
	Cons y ys -> (let rest = Cons y ys in Cons x rest) or (let rest = insert(x, ys) in Cons y rest) };
perm(l) = fcase l of { Nil -> Nil; Cons x xs -> let p = perm(xs) in insert(x, p) };
leq(n, m) = fcase n of { Z -> True; S a -> fcase m of { Z -> False; S b -> leq(a, b) } };
sorted(l) = fcase l of { Nil -> True; Cons x xs -> next(x, xs) };
next(x, xs) = fcase xs of { Nil -> True; Cons y ys -> let a = leq(x, y), b = sorted(xs) in and(a, b) };
all(l) = fcase l of { Nil -> True; Cons x xs -> all(xs) };
`

// The derivations of a program that fail, and those that succeed, are as many as the program of
// testdata/programs/curry reports of its search. All choices here are of two alternatives, so that
// their number follows from that of the derivations, which are the leaves of a binary tree.
func TestSearchTreesOfPrograms(t *testing.T) {
	for _, c := range []struct {
		name, main                string
		choices, failures, values int
	}{
		// curry knights
		{"knights", `main() = let k = knights() in firsts(k);
firsts(k) = fcase k of { Cons a r -> fcase a of { True -> rest(r); False -> rest(r) } };
rest(r) = fcase r of { Cons b s -> fcase b of { True -> last(s); False -> last(s) } };
last(s) = fcase s of { Cons c n -> fcase c of { True -> c; False -> c } };`, 10, 5, 1},
		// curry permsort 5
		{"permsort", `main() = let ` + number("five", 5) + `l0 = Nil, l1 = Cons n1 l0, l2 = Cons n2 l1, l3 = Cons n3 l2, l4 = Cons n4 l3, l5 = Cons five l4,
	p = perm(l5), ok = sorted(p), v = all(p) in cond(ok, v);`, 116, 58, 1},
	} {
		p := parse(t, puzzles+c.main)
		failures, values := 0, 0
		outcomes(p, 1000, func(_ []int, m *Machine[string], v Value, err error) {
			switch {
			case err == nil:
				values++
			case errors.Is(err, ErrFail):
				failures++
			default:
				t.Errorf("%s: %v", c.name, err)
			}
		})
		if choices := 2 * (failures + values - 1); choices != c.choices || failures != c.failures || values != c.values {
			t.Errorf("%s: %d alternatives, %d failures, %d values; want %d, %d, %d", c.name, choices, failures, values, c.choices, c.failures, c.values)
		}
	}
}
