package diagnosis

import (
	"path"
	"regexp"
	"strings"
	"sync"
)

// unitVersion is the version at the end of a package's name: "-0.6.4.1".
var unitVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-[0-9]+(?:\.[0-9]+)*$`) })

// withGHC are packages that can only be built together with GHC.
var withGHC = map[string]bool{
	"base": true, "ghc-prim": true, "ghc-internal": true, "ghc-bignum": true, "ghc-experimental": true,
	"integer-gmp": true, "integer-simple": true, "template-haskell": true, "rts": true,
}

// comesWithGHC are packages that are installed with GHC. cabal uses the installed ones
// unless configured otherwise.
var comesWithGHC = map[string]bool{
	"array": true, "binary": true, "bytestring": true, "Cabal": true, "containers": true, "deepseq": true,
	"directory": true, "exceptions": true, "filepath": true, "haskeline": true, "hpc": true, "mtl": true,
	"os-string": true, "parsec": true, "pretty": true, "process": true, "semaphore-compat": true, "stm": true,
	"terminfo": true, "text": true, "time": true, "transformers": true, "unix": true, "xhtml": true,
}

// NotesRemedy explains how to build packages with source notes: lines for cabal.project
// and stack.yaml. Packages are named with or without versions; "main" is the program
// itself.
func NotesRemedy(pkgs ...string) string {
	var cabal, stack, sources, extra, ghcs, out []string
	for _, pkg := range pkgs {
		name := unitVersion().ReplaceAllString(pkg, "")
		switch {
		case pkg == "main":
			out = append(out, "ghc -g3; cabal build --ghc-options=-g3; stack build --ghc-options=-g3")
			continue
		case withGHC[name]:
			ghcs = append(ghcs, name)
			continue
		}
		cabal = append(cabal, "  package "+name, "    ghc-options: -g3")
		stack = append(stack, "    "+name+": -g3")
		if comesWithGHC[name] {
			sources = append(sources, name+" source")
			extra = append(extra, pkg)
		}
	}
	if len(cabal) > 0 {
		cabal = append([]string{"cabal.project:"}, cabal...)
		stack = append([]string{"stack.yaml:", "  ghc-options:"}, stack...)
		if len(sources) > 0 {
			cabal = append(cabal, "  constraints: "+strings.Join(sources, ", "))
			stack = append(stack, "  extra-deps: ["+strings.Join(extra, ", ")+"]")
		}
		out = append(append(out, cabal...), stack...)
	}
	switch len(ghcs) {
	case 0:
	case 1:
		out = append(out, ghcs[0]+" comes with GHC: "+ghcNotes)
	default:
		out = append(out, strings.Join(ghcs, ", ")+" come with GHC: "+ghcNotes)
	}
	return strings.Join(out, "\n")
}

// sharedLibrary matches the names of GHC's shared libraries: a package and version (the
// RTS may have no version), often a hash, and a way.
var sharedLibrary = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^libHS(rts|.+?-[0-9]+(?:\.[0-9]+)*)(?:-[0-9A-Za-z]+)?(?:_[a-z]+)*-ghc[0-9.]+\.so$`)
})

// sharedPackage returns the package of a shared library of Haskell code, with its
// version.
func sharedPackage(file string) (pkg string, ok bool) {
	m := sharedLibrary().FindStringSubmatch(path.Base(file))
	if m == nil {
		return "", false
	}
	return m[1], true
}

const ghcNotes = "source notes need a GHC built with them (hadrian/build --flavour=release+debug_info)"
