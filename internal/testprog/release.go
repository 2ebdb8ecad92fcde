package testprog

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Releases are the GHC releases that programs are compiled with: "" is the machine's own,
// the others are those for which scripts/ghc-chroot makes a chroot.
var Releases = []string{"", "9.6.6", "9.10.3"}

// chroot gives the folder that scripts/ghc-chroot makes for a release.
func chroot(tb testing.TB, release string) string {
	tb.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(dir, "ccagent", "ghc", release)
}

// fromChroot gives the flags with which a program finds its loader and all libraries
// inside a release's chroot.
func fromChroot(tb testing.TB, release string) []string {
	tb.Helper()
	dir := chroot(tb, release)
	libraries, err := filepath.Glob(filepath.Join(dir, "usr/lib/ghc/lib/*-ghc-"+release))
	if err != nil || len(libraries) != 1 {
		tb.Fatalf("find the shared libraries of GHC %s in %s: %q, %v", release, dir, libraries, err)
	}
	return []string{
		"-optl-Wl,--dynamic-linker=" + filepath.Join(dir, "lib64/ld-linux-x86-64.so.2"),
		// DT_RPATH is used because it also applies to the libraries that libraries need.
		"-optl-Wl,--disable-new-dtags,-rpath," + libraries[0] + ":" + filepath.Join(dir, "usr/lib/x86_64-linux-gnu"),
	}
}

// Chrooted gives the flags by which a program of a release uses the chroot's C libraries and loader, where Build would link it statically;
// none for the machine's own GHC.
func Chrooted(tb testing.TB, release string) []string {
	tb.Helper()
	if release == "" {
		return nil
	}
	NeedRelease(tb, release)
	return fromChroot(tb, release)
}

// NeedRelease skips the test if there is no chroot of that release. It does not make one,
// because that takes minutes and a mirror.
func NeedRelease(tb testing.TB, release string) {
	tb.Helper()
	NeedRoot(tb)
	if _, err := os.Stat(filepath.Join(chroot(tb, release), "usr", "bin", "ghc")); err != nil {
		Skip(tb, &UnsupportedError{Need: "GHC " + release, Hint: "scripts/ghc-chroot " + release})
	}
}

// Compile runs a release's ghc in a folder. Programs are linked statically, so that they run
// outside of the release's chroot; with -dynamic, and with the flags of Chrooted, they use the chroot's loader and libraries.
func Compile(tb testing.TB, release, dir string, args ...string) {
	tb.Helper()
	var cmd *exec.Cmd
	if release == "" {
		ghc, _ := GHC(tb, "")
		cmd = exec.Command(ghc, args...)
	} else {
		NeedRelease(tb, release)
		root, err := moduleRoot()
		if err != nil {
			tb.Fatal(err)
		}
		linked := []string{"-optl-static"}
		switch chrooted := fromChroot(tb, release); {
		case slices.Contains(args, chrooted[0]):
			linked = nil
		case slices.Contains(args, "-dynamic"):
			linked = chrooted
		}
		cmd = exec.Command(filepath.Join(root, "scripts", "ghc-chroot"), slices.Concat([]string{release, "ghc"}, linked, args)...)
	}
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("compile with GHC %s: %v\n%s", release, err, out)
	}
}

// CopySource copies a program's sources into a folder and gives the inputs for
// ghc.
func CopySource(tb testing.TB, name, dir string) (inputs []string) {
	tb.Helper()
	src := Source(tb, name)
	_, inputs, err := buildKey(src, "", "", nil)
	if err != nil {
		tb.Fatal(err)
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".hs", ".h", ".c":
			b, err := os.ReadFile(filepath.Join(src, e.Name()))
			if err != nil {
				tb.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, e.Name()), b, 0o644); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return inputs
}

// buildByRelease is Build with a release's compiler. The sources lie beside the
// executable.
func buildByRelease(tb testing.TB, name string, o Options) string {
	tb.Helper()
	NeedRelease(tb, o.Release)
	key, _, err := buildKey(Source(tb, name), "ghc-chroot", o.Release, o.args())
	if err != nil {
		tb.Fatalf("build %s: %v", name, err)
	}
	return cached(tb, key, name, func(tmp string) {
		inputs := CopySource(tb, name, tmp)
		Compile(tb, o.Release, tmp, append(append(o.args(), "-outputdir", "obj", "-o", name), inputs...)...)
	})
}

// Each runs a test for the machine's GHC and for each release.
func Each(t *testing.T, test func(t *testing.T, release string)) {
	for _, r := range Releases {
		name := r
		if name == "" {
			name = "ghc"
		}
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}
