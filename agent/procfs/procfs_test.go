package procfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestParseMapping(t *testing.T) {
	for _, c := range []struct {
		line string
		want Mapping
		ok   bool
	}{
		{"00403000-00495000 r-xp 00003000 fe:0a 1234                           /usr/bin/prog",
			Mapping{0x403000, 0x495000, 0x3000, 0xfe, 0x0a, 1234, "/usr/bin/prog"}, true},
		{"7ffd0-7ffd2 r-xp 00000000 00:00 0                          [vdso]",
			Mapping{0x7ffd0, 0x7ffd2, 0, 0, 0, 0, "[vdso]"}, true},
		{"1000-2000 r-xp 00000000 00:00 7 /a b/c  d", Mapping{0x1000, 0x2000, 0, 0, 0, 7, "/a b/c  d"}, true},
		{`1000-2000 r-xp 00000000 00:00 7 /a\012b`, Mapping{0x1000, 0x2000, 0, 0, 0, 7, "/a\nb"}, true},
		{"1000-2000 rwxp 00000000 00:00 0", Mapping{Start: 0x1000, End: 0x2000}, true},
		{"1000-2000 r--p 00000000 fe:0a 1234 /usr/bin/prog", Mapping{}, false},
		{"1000 r-xp 00000000 fe:0a 1234 /usr/bin/prog", Mapping{}, false},
		{"1000-2000 r-xp 00000000 fe:0a", Mapping{}, false},
		{"", Mapping{}, false},
	} {
		got, ok := parseMapping(c.line)
		if ok != c.ok || ok && got != c.want {
			t.Errorf("%q gives %+v, %v; want %+v, %v", c.line, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParseMapping(f *testing.F) {
	f.Add("00403000-00495000 r-xp 00003000 fe:0a 1234 /usr/bin/prog")
	f.Add("x-x x x x x x")
	f.Fuzz(func(t *testing.T, line string) {
		m, ok := parseMapping(line)
		if !ok && m.Path != "" {
			t.Errorf("a refused line gives a path: %+v", m)
		}
	})
}

// The test's own program is mapped where the kernel says, and is found again.
func TestReadMapsOfSelf(t *testing.T) {
	maps, err := Maps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(maps, func(m Mapping) bool { return m.Path == exe && m.Inode != 0 }) {
		t.Errorf("%s is not among %+v", exe, maps)
	}
}

func TestReadCPUList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpus")
	for text, want := range map[string][]int{
		"0\n":     {0},
		"0-3\n":   {0, 1, 2, 3},
		"0,2-3\n": {0, 2, 3},
		"":        nil,
		"3-1":     nil,
		"0-99999": nil,
		"a":       nil,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readCPUList(path)
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q gives %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestCPUTimeOfSelf(t *testing.T) {
	before, _, ok := CPUTime(os.Getpid())
	if !ok {
		t.Fatal("own CPU time cannot be read")
	}
	for after := before; after == before; {
		if after, _, ok = CPUTime(os.Getpid()); !ok || after < before {
			t.Fatalf("CPU time went from %d to %d, %v", before, after, ok)
		}
	}
}

// The program's name may look like the fields that follow it; what is cut short says
// nothing.
func TestParseCPUTime(t *testing.T) {
	const stat = "7 (a) Z 1 (b)) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9\n"
	if used, ended, ok := parseCPUTime([]byte(stat)); used != 26*1e7 || ended || !ok {
		t.Errorf("used %d, ended %v, ok %v", used, ended, ok)
	}
	if _, ended, _ := parseCPUTime([]byte("7 (a) Z 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20")); !ended {
		t.Error("a zombie has not ended")
	}
	for _, bad := range []string{"", "7 (a", "7 (a) S", "7 (a) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7", "7 (a) S 1 7 7 0 -1 4194304 1 2 3 4 5 -6 7 8"} {
		if _, _, ok := parseCPUTime([]byte(bad)); ok {
			t.Errorf("%q gives a time", bad)
		}
	}
}

// A clock is the process's own, and says when that is gone.
func TestCPUClockOfEnded(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := OpenCPUClock(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ended, ok := c.Used(); ended || !ok {
		t.Errorf("running: ended %v, ok %v", ended, ok)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, _, ok := c.Used(); ok {
		t.Error("a process that is gone has a CPU time")
	}
}
