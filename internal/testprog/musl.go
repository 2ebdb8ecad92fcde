package testprog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// fortified is what Debian's libgmp, which was compiled for glibc, needs and musl does not have.
const fortified = `#include <stdarg.h>
#include <stdio.h>
int __fprintf_chk(FILE *f, int level, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vfprintf(f, format, args);
	va_end(args);
	return n;
}
`

// BuildMusl is Build for a program that is linked statically with musl in place of glibc, as many are
// deployed. The test is skipped where musl-gcc or the static libraries that GHC's need are missing.
func BuildMusl(tb testing.TB, name string, o Options) string {
	tb.Helper()
	musl := NeedTool(tb, "musl-gcc", "musl-tools")
	ghc, version := GHC(tb, o.GHC)
	const folder = "/usr/lib/x86_64-linux-gnu"
	libraries := []string{"libgmp.a", "libffi.a"}
	for _, library := range libraries {
		if _, err := os.Stat(filepath.Join(folder, library)); err != nil {
			Skip(tb, &UnsupportedError{Need: library, Hint: "apt-get install libgmp-dev libffi-dev"})
		}
	}
	src := Source(tb, name)
	key, inputs, err := buildKey(src, ghc, version, o.args())
	if err != nil {
		tb.Fatalf("build %s: %v", name, err)
	}
	sum := sha256.Sum256([]byte("musl\x00" + key + fortified))
	exe := cached(tb, hex.EncodeToString(sum[:12]), name, func(tmp string) {
		obj := filepath.Join(tmp, "obj")
		check := func(err error) {
			tb.Helper()
			if err != nil {
				tb.Fatalf("build %s with musl: %v", name, err)
			}
		}
		check(os.Mkdir(obj, 0o755))
		// The folder has glibc's own libraries too, so these two alone are looked for elsewhere.
		for _, library := range libraries {
			check(os.Symlink(filepath.Join(folder, library), filepath.Join(obj, library)))
		}
		check(os.WriteFile(filepath.Join(obj, "fortified.c"), []byte(fortified), 0o644))
		more := filepath.Join(obj, "fortified.o")
		if out, err := exec.Command(musl, "-c", "-o", more, filepath.Join(obj, "fortified.c")).CombinedOutput(); err != nil {
			check(fmt.Errorf("%w\n%s", err, out))
		}
		cmd := exec.Command(ghc, slices.Concat(o.args(), []string{"-outputdir", obj, "-o", filepath.Join(tmp, name),
			"-pgml", musl, "-optl-static", "-optl-no-pie", "-optl-L" + obj, more}, inputs)...)
		cmd.Dir = src
		if out, err := cmd.CombinedOutput(); err != nil {
			check(fmt.Errorf("%w\n%s", err, out))
		}
	})
	if err := madeAfter(exe, src); err != nil {
		tb.Fatalf("build %s with musl: %v", name, err)
	}
	return exe
}
