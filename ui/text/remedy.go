package text

import (
	"regexp"
	"strings"
)

// unitVersion is the version at the end of a package's name: "-0.6.4.1".
var unitVersion = regexp.MustCompile(`-[0-9]+(?:\.[0-9]+)*$`)

// withGHC are the packages that only a build of GHC itself builds.
var withGHC = map[string]bool{
	"base": true, "ghc-prim": true, "ghc-internal": true, "ghc-bignum": true, "ghc-experimental": true,
	"integer-gmp": true, "integer-simple": true, "template-haskell": true, "rts": true,
}

// comesWithGHC are packages that are installed with GHC, and that cabal takes
// from there unless told otherwise.
var comesWithGHC = map[string]bool{
	"array": true, "binary": true, "bytestring": true, "Cabal": true, "containers": true, "deepseq": true,
	"directory": true, "exceptions": true, "filepath": true, "haskeline": true, "hpc": true, "mtl": true,
	"os-string": true, "parsec": true, "pretty": true, "process": true, "semaphore-compat": true, "stm": true,
	"terminfo": true, "text": true, "time": true, "transformers": true, "unix": true, "xhtml": true,
}

// notesRemedy says how to build a package with source notes: lines for
// cabal.project and stack.yaml.
func notesRemedy(pkg string) string {
	name := unitVersion.ReplaceAllString(pkg, "")
	switch {
	case pkg == "main":
		return "ghc -g3; cabal build --ghc-options=-g3; stack build --ghc-options=-g3"
	case withGHC[name]:
		return "comes with GHC: its notes need a GHC built with them (hadrian/build --flavour=release+debug_info)"
	}
	cabal := []string{"cabal.project:", "  package " + name, "    ghc-options: -g3"}
	stack := []string{"stack.yaml:", "  ghc-options:", "    " + name + ": -g3"}
	if comesWithGHC[name] {
		cabal = append(cabal, "  constraints: "+name+" source")
		stack = append(stack, "  extra-deps: ["+pkg+"]")
	}
	return strings.Join(append(cabal, stack...), "\n")
}
