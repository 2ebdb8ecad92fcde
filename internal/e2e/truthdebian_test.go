package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// debianProgram is a program of Debian's sources and something for it to do.
type debianProgram struct {
	testprog.DebianProgram
	// arguments makes the input; source is the program's source.
	arguments func(t *testing.T, source string) []string
}

var debianAlex = debianProgram{
	testprog.DebianProgram{
		Package: "alex", Main: "src/Main.hs", Folders: []string{"src"}, Paths: "Paths_alex",
		Flags: []string{"-XHaskell98", "-XCPP", "-XMagicHash"},
	},
	func(t *testing.T, source string) []string {
		// A lexer of 450 keywords, and names and numbers in three alphabets.
		var s strings.Builder
		s.WriteString("{\nmodule Main where\n}\n%wrapper \"basic\"\n" +
			`$upper=[A-Z\xc0-\xde\x391-\x3a9\x410-\x42f]` + "\n" + `$lower=[a-z\xdf-\xff\x3b1-\x3c9\x430-\x44f]` + "\n" +
			`$digit=[0-9\x660-\x669]` + "\ntokens :-\n")
		for i := range 450 {
			fmt.Fprintf(&s, "  \"kw%d\" { id }\n", i)
		}
		s.WriteString("  $upper [$upper $lower $digit]* { id }\n  $lower [$upper $lower $digit]* { id }\n" +
			`  $digit+ (\. $digit+)? ([eE] [\+\-]? $digit+)? { id }` + "\n  $white+ ;\n")
		dir := t.TempDir()
		input := filepath.Join(dir, "Lexer.x")
		if err := os.WriteFile(input, []byte(s.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{"--template=" + filepath.Join(source, "data"), "-o", filepath.Join(dir, "Lexer.hs"), input}
	},
}

var debianHappy = debianProgram{
	testprog.DebianProgram{
		Package: "happy", Main: "src/Main.lhs", Folders: []string{"src"}, Paths: "Paths_happy",
		Flags: []string{"-XHaskell98", "-XCPP", "-XMagicHash", "-XFlexibleContexts"},
	},
	func(t *testing.T, source string) []string {
		return []string{"--template=" + filepath.Join(source, "data"), "-o", filepath.Join(t.TempDir(), "Parser.hs"), filepath.Join(source, "tests/issue93.y")}
	},
}

var debianCpphs = debianProgram{
	testprog.DebianProgram{
		Package: "cpphs", Main: "cpphs.hs", Folders: []string{".", "new"}, Flags: []string{"-XHaskell98"},
		Needs: []string{"libghc-polyparse-dev"},
	},
	func(t *testing.T, source string) []string {
		// Its own modules, a hundred times.
		var modules []byte
		err := filepath.WalkDir(filepath.Join(source, "Language"), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !isHaskell(path) {
				return err
			}
			data, err := os.ReadFile(path)
			modules = append(modules, data...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		input := filepath.Join(dir, "Input.hs")
		if err := os.WriteFile(input, bytes.Repeat(modules, 100), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{"--strip", "--text", "-DLIMIT=1", "-O" + filepath.Join(dir, "Output.hs"), input}
	},
}

var debianHLint = debianProgram{
	testprog.DebianProgram{
		Package: "hlint", Main: "src/Main.hs", Folders: []string{"src"}, Paths: "Paths_hlint",
		Flags: []string{"-XHaskell2010", "-package", "ghc"},
		Needs: []string{
			"libghc-aeson-dev", "libghc-ansi-terminal-dev", "libghc-cmdargs-dev", "libghc-cpphs-dev", "libghc-data-default-dev",
			"libghc-extra-dev", "libghc-file-embed-dev", "libghc-filepattern-dev", "libghc-ghc-lib-parser-ex-dev",
			"libghc-hscolour-dev", "libghc-refact-dev", "libghc-uniplate-dev", "libghc-unordered-containers-dev",
			"libghc-utf8-string-dev", "libghc-vector-dev", "libghc-yaml-dev",
		},
	},
	func(_ *testing.T, source string) []string {
		// Its hints on some of its own modules; "no hints" is its status 0.
		return []string{"--datadir=" + filepath.Join(source, "data"), "--no-exit-code", "--quiet", filepath.Join(source, "src/Hint"), filepath.Join(source, "src/Config")}
	},
}
