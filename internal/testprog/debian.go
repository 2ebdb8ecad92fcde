package testprog

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// DebianProgram is a program of one of Debian's source packages, compiled by GHC alone.
type DebianProgram struct {
	Package string   // source package
	Main    string   // file of module Main, in the source
	Folders []string // of modules, in the source
	Flags   []string // that its Cabal file gives to GHC
	Paths   string   // module that Cabal generates, "Paths_alex"; empty if none is imported
	Needs   []string // Debian packages of libraries that are not GHC's own
}

// Fetch gives the folder of the program's source, which must not be written to. The test is
// skipped if Debian's sources cannot be reached.
func (p DebianProgram) Fetch(tb testing.TB) string {
	tb.Helper()
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	cache, err := cacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(cache), "debian", p.Package)
	out, err := exec.Command(filepath.Join(root, "scripts", "debian-source"), p.Package, dir).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		Skip(tb, &UnsupportedError{Need: "Debian's source of " + p.Package, Hint: lines[len(lines)-1]})
	}
	if err != nil {
		tb.Fatalf("debian-source %s: %v\n%s", p.Package, err, out)
	}
	return dir
}

// Build compiles the program with -O1, as Cabal does, and -g3, and returns the path of the
// executable, which is named as the package and must not be written to. Paths of sources in its
// debug information are relative to what Fetch gives.
func (p DebianProgram) Build(tb testing.TB, o Options) string {
	tb.Helper()
	for _, name := range p.Needs {
		if exec.Command("dpkg", "-s", name).Run() != nil {
			Skip(tb, &UnsupportedError{Need: name, Hint: "apt-get install " + strings.Join(p.Needs, " ")})
		}
	}
	src := p.Fetch(tb)
	ghc, version := GHC(tb, "")
	flags := slices.Concat(o.args(), []string{"-O1", "-w"}, p.Flags)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%q\x00%+v", src, ghc, version, flags, p))
	return cached(tb, hex.EncodeToString(sum[:12]), p.Package, func(tmp string) {
		if p.Paths != "" {
			text := fmt.Sprintf("module %s where\nimport Data.Version\nversion :: Version\nversion = makeVersion [0]\ngetDataDir :: IO FilePath\ngetDataDir = return %q\n", p.Paths, src)
			if err := os.WriteFile(filepath.Join(tmp, p.Paths+".hs"), []byte(text), 0o644); err != nil {
				tb.Fatal(err)
			}
			flags = append(flags, "-i"+tmp)
		}
		for _, folder := range p.Folders {
			flags = append(flags, "-i"+folder)
		}
		cmd := exec.Command(ghc, append(flags, "-outputdir", filepath.Join(tmp, "obj"), "-o", filepath.Join(tmp, p.Package), p.Main)...)
		cmd.Dir = src
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Fatalf("build %s: %v\n%s", p.Package, err, out)
		}
	})
}
