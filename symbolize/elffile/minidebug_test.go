package elffile

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"ccagent/internal/testprog"
)

// withMiniDebug gives a program stripped of its symbols, with those of its functions in the section,
// made as distributions do, and the file that is in it.
func withMiniDebug(t *testing.T, flags ...string) (program string, mini []byte) {
	t.Helper()
	xz, objcopy, cc := testprog.NeedTool(t, "xz", "xz-utils"), testprog.NeedTool(t, "objcopy", "binutils"), testprog.NeedTool(t, "gcc", "gcc")
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	do := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	if err := os.WriteFile(in("p.c"), []byte("static int __attribute__((noinline)) hidden(int x) { return x * 3; }\nint main(int n, char **v) { return hidden(n + (v != 0)); }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	do(cc, "-o", in("p"), in("p.c"))
	do(objcopy, "-S", "--remove-section", ".comment", "--keep-symbol=main", "--keep-symbol=hidden", in("p"), in("mini"))
	mini, err := os.ReadFile(in("mini"))
	if err != nil {
		t.Fatal(err)
	}
	do(append(append([]string{xz, "-k"}, flags...), in("mini"))...)
	do(objcopy, "-S", "--add-section", MiniDebugSection+"="+in("mini.xz"), in("p"), in("stripped"))
	return in("stripped"), mini
}

// The names of functions in a stripped program are those in its .gnu_debugdata.
func TestMiniDebug(t *testing.T) {
	program, mini := withMiniDebug(t)
	f := openFile(t, program)
	if f.HasSymtab() {
		t.Fatal("the program is not stripped")
	}
	d, err := f.MiniDebug(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := d.Symbols(1 << 20)
	if err != nil || !slices.ContainsFunc(symbols, func(s Symbol) bool { return s.Name == "hidden" && s.Addr != 0 }) {
		t.Errorf("%v, %v", symbols, err)
	}
	if _, err := f.MiniDebug(uint64(len(mini)) - 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("within a budget that is too small: %v", err)
	}
	if d, err := openFile(t, "/proc/self/exe").MiniDebug(1 << 20); d != nil || err != nil {
		t.Errorf("of a program without it: %v, %v", d, err)
	}
}

// A stream that asks for more memory than it may have is refused before it has any.
func TestMiniDebugDictionary(t *testing.T) {
	program, _ := withMiniDebug(t, "--lzma2=dict=256MiB")
	if _, err := openFile(t, program).MiniDebug(1 << 20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func FuzzUnxz(f *testing.F) {
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x00\x00\x00\x00\x37\x27\x97\xd6\x01\x00\x02abc\x00"))
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46\x02\xc0\x80\x01\x80\x01\x21\x01\x28"))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 12
		out, err := unxz(bytes.NewReader(b), limit)
		if len(out) > limit || err != nil && out != nil {
			t.Errorf("%d bytes, %v", len(out), err)
		}
	})
}
