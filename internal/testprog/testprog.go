package testprog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Options are options for compiling a program. The zero value is what users are advised to
// use: ghc -O2 -g3.
type Options struct {
	GHC      string // compiler; "ghc" from PATH if empty
	Release  string // "9.6.6": a release that scripts/ghc-chroot has made, in place of GHC
	O0       bool   // -O0 in place of -O2
	NoDebug  bool   // without any -g
	Threaded bool   // -threaded
	Prof     bool   // -prof, with a cost centre for each exported binding
	Dynamic  bool   // -dynamic: Haskell libraries as shared objects
	Strip    bool   // no symbol table
	Flags    []string
}

func (o Options) args() []string {
	a := []string{"-v0", "-Wall", "-rtsopts"}
	if o.O0 {
		a = append(a, "-O0")
	} else {
		a = append(a, "-O2")
	}
	if !o.NoDebug {
		a = append(a, "-g3")
	}
	if o.Threaded {
		a = append(a, "-threaded")
	}
	if o.Prof {
		a = append(a, "-prof", "-fprof-auto-exported")
	}
	if o.Dynamic {
		a = append(a, "-dynamic")
	}
	if o.Strip {
		a = append(a, "-optl-s")
	}
	return append(a, o.Flags...)
}

// Source gives the folder of a program's sources.
func Source(tb testing.TB, name string) string {
	tb.Helper()
	root, err := moduleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(root, "testdata", "programs", name)
	if _, err := os.Stat(filepath.Join(dir, "Main.hs")); err != nil {
		tb.Fatalf("find test program: %v", err)
	}
	return dir
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find go.mod: not inside the module")
		}
		dir = up
	}
}

// Build compiles testdata/programs/NAME and returns the path of the executable, which is
// named NAME and must not be written to. Paths of sources in its debug information are
// relative to the program's own folder. The test is skipped if the compiler or its profiling
// libraries are missing, and fails on an error or a warning.
func Build(tb testing.TB, name string, o Options) string {
	tb.Helper()
	if o.Release != "" {
		return buildByRelease(tb, name, o)
	}
	ghc, version := GHC(tb, o.GHC)
	src := Source(tb, name)
	key, inputs, err := buildKey(src, ghc, version, o.args())
	if err != nil {
		tb.Fatalf("build %s: %v", name, err)
	}
	exe := cached(tb, key, name, func(tmp string) {
		args := append(o.args(), "-outputdir", filepath.Join(tmp, "obj"), "-o", filepath.Join(tmp, name))
		cmd := exec.Command(ghc, append(args, inputs...)...)
		cmd.Dir = src
		out, err := cmd.CombinedOutput()
		if o.Prof && bytes.Contains(out, []byte("profiling libraries")) {
			Skip(tb, &UnsupportedError{Need: "GHC's profiling libraries", Hint: "apt-get install ghc-prof"})
		}
		if err != nil {
			tb.Fatalf("build %s: %v\n%s", name, err, out)
		}
		// GHC also warns about folders that the distribution's package database names but does
		// not contain; these warnings are not about the program.
		if bytes.Contains(out, []byte(".hs:")) {
			tb.Fatalf("build %s: not free of warnings\n%s", name, out)
		}
	})
	if err := madeAfter(exe, src); err != nil {
		tb.Fatalf("build %s: %v", name, err)
	}
	return exe
}

// madeAfter sets the time of an executable that is older than its sources to now. Sources that were written
// again, as by a new checkout, have the text that it was built from, but are taken for other ones.
func madeAfter(exe, src string) error {
	made, err := os.Stat(exe)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, err := e.Info()
		if err != nil {
			return err
		}
		if source.ModTime().After(made.ModTime()) {
			now := time.Now()
			return os.Chtimes(exe, now, now)
		}
	}
	return nil
}

// cached returns the path of an executable of that name in the cache's folder of a key. If it is not
// there, build makes it in a new folder, with what it needs no longer in obj.
func cached(tb testing.TB, key, name string, build func(tmp string)) (exe string) {
	tb.Helper()
	check := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatalf("build %s: %v", name, err)
		}
	}
	cache, err := cacheDir()
	check(err)
	dir := filepath.Join(cache, key)
	unlock, err := lock(dir + ".lock")
	check(err)
	defer unlock()
	exe = filepath.Join(dir, name)
	if _, err := os.Stat(exe); err == nil {
		return exe
	}
	tmp, err := os.MkdirTemp(cache, "build-")
	check(err)
	defer os.RemoveAll(tmp)
	build(tmp)
	check(os.RemoveAll(filepath.Join(tmp, "obj")))
	// The cache is readable by all: tests run programs as other users.
	check(os.Chmod(tmp, 0o755))
	check(os.Rename(tmp, dir))
	return exe
}

type compiler struct{ path, version string }

var (
	compilersMu sync.Mutex
	compilers   = map[string]compiler{}
)

// GHC finds a compiler ("" is "ghc" from PATH) and its numeric version. The test is skipped
// if there is none.
func GHC(tb testing.TB, name string) (path, version string) {
	tb.Helper()
	if name == "" {
		name = "ghc"
	}
	path = NeedTool(tb, name, "ghc")
	compilersMu.Lock()
	defer compilersMu.Unlock()
	if c, ok := compilers[path]; ok {
		return c.path, c.version
	}
	out, err := exec.Command(path, "--numeric-version").Output()
	if err != nil {
		tb.Fatalf("ask %s for its version: %v", path, err)
	}
	version = strings.TrimSpace(string(out))
	compilers[path] = compiler{path, version}
	return path, version
}

// buildKey hashes all that a build depends on, and names the files to compile.
func buildKey(src, ghc, version string, args []string) (key string, inputs []string, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%q\x00", src, ghc, version, args)
	entries, err := os.ReadDir(src)
	if err != nil {
		return "", nil, err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	inputs = []string{"Main.hs"}
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".hs", ".h":
		case ".c":
			inputs = append(inputs, e.Name())
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join(src, e.Name()))
		if err != nil {
			return "", nil, err
		}
		fmt.Fprintf(h, "%s\x00%d\x00", e.Name(), len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), inputs, nil
}

func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory: %w; set HOME or XDG_CACHE_HOME", err)
	}
	dir = filepath.Join(dir, "ccagent-test", "programs")
	return dir, os.MkdirAll(dir, 0o755)
}

// lock prevents concurrent test processes from building the same program.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil
}

// CopyTo puts a copy of an executable into dir, for tests that change it or run it as
// a user who cannot enter the cache directory.
func CopyTo(tb testing.TB, exe, dir string) string {
	tb.Helper()
	data, err := os.ReadFile(exe)
	if err != nil {
		tb.Fatal(err)
	}
	to := filepath.Join(dir, filepath.Base(exe))
	if err := os.WriteFile(to, data, 0o755); err != nil {
		tb.Fatal(err)
	}
	return to
}

// WaitExecuted waits until a process that was just started runs its program. exec.Cmd's Start
// returns when the kernel closes files, before it has mapped the program; the environment is what
// it sets last.
func WaitExecuted(t *testing.T, pid int) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		switch {
		case err != nil:
			t.Fatal(err)
		case len(environment) > 0:
			return
		case time.Since(begun) > 3*time.Minute:
			t.Fatalf("process %d has not executed its program", pid)
		}
	}
}
