package hsname

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// commonClasses are classes of base and mtl, whose names need not be in a
// program that uses their instances.
var commonClasses = func() map[string]bool {
	m := map[string]bool{}
	for _, c := range strings.Fields(`Alternative Applicative Arrow Bifunctor Binary Bits Bounded Category Data Enum Eq
		Exception FiniteBits Floating Foldable Fractional Functor Generic Hashable Integral IsList IsString Ix Monad
		MonadError MonadFail MonadFix MonadIO MonadPlus MonadReader MonadState MonadTrans MonadWriter MonadZip Monoid
		NFData Num Ord Outputable Pretty Read Real RealFloat RealFrac Semigroup Show Storable Traversable Typeable`) {
		m[c] = true
	}
	return m
}()

// Member names a method of an instance, or the instance itself where method is empty, as people read it:
// "compare (instance Ord Shape)". instance is Origin's; where it is empty, the name is method's. isClass is as for Instance.
func Member(method, instance string, isClass func(string) bool) string {
	if instance == "" {
		return method
	}
	name := "(instance " + Instance(instance, isClass) + ")"
	if method != "" {
		name = method + " " + name
	}
	return name
}

// Instance takes the name of an instance apart, in which GHC runs class and
// types together: "EqSet" is "Eq Set". isClass recognises classes beyond the
// common ones; it may be nil. Where no class or more than one fits, the name
// comes back as it is.
func Instance(s string, isClass func(string) bool) string {
	found := 0
	for i := range s {
		r, _ := utf8.DecodeRuneInString(s[i:])
		if i == 0 || unicode.IsLower(r) || unicode.IsDigit(r) || r == '_' || r == '\'' {
			continue
		}
		if commonClasses[s[:i]] || isClass != nil && isClass(s[:i]) {
			if found > 0 {
				return s
			}
			found = i
		}
	}
	if found == 0 {
		return s
	}
	return s[:found] + " " + s[found:]
}
