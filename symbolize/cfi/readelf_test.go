package cfi

import (
	"bufio"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// systemLibraries are C code of every machine that tests run on.
func systemLibraries(tb testing.TB) []string {
	tb.Helper()
	var found []string
	for _, name := range []string{"libc.so.6", "libm.so.6", "libgmp.so.10", "ld-linux-x86-64.so.2"} {
		out, err := exec.Command("ldconfig", "-p").Output()
		if err != nil {
			out, _ = exec.Command("/sbin/ldconfig", "-p").Output()
		}
		for _, line := range strings.Split(string(out), "\n") {
			if f := strings.Fields(line); len(f) > 2 && f[0] == name && strings.Contains(line, "x86-64") {
				found = append(found, f[len(f)-1])
				break
			}
		}
	}
	if len(found) == 0 {
		testprog.Skip(tb, &testprog.UnsupportedError{Need: "an x86-64 C library"})
	}
	return found
}

var amd64Names = map[string]uint8{
	"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7,
	"r8": 8, "r9": 9, "r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "ra": 16,
}

// readelfRow is a row that readelf computed, by the names of its columns.
type readelfRow struct {
	addr    uint64
	columns map[string]string
	haskell bool
	// The column of rsp differs from the row before.
	rspChanged bool
}

var fdeLine = regexp.MustCompile(`FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)`)

// readelfRows asks binutils for all rows of a file.
func readelfRows(t *testing.T, path string) []readelfRow {
	readelf := testprog.NeedTool(t, "readelf", "binutils")
	cmd := exec.Command(readelf, "--wide", "--debug-dump=frames-interp", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	var rows []readelfRow
	var names []string
	var previous readelfRow
	commons := map[string]readelfRow{} // a CIE's row, for FDEs without one
	var cie, section string
	var fde *readelfRow
	flush := func() {
		if fde != nil {
			rows = append(rows, *fde)
			fde = nil
		}
	}
	s := bufio.NewScanner(out)
	for s.Scan() {
		line := s.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "Contents of the "):
			section = fields[3]
		case strings.Contains(line, " CIE "):
			flush()
			cie = section + strings.TrimLeft(fields[0], "0")
		case strings.Contains(line, " FDE "):
			flush()
			cie = ""
			m := fdeLine.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("read %q", line)
			}
			lo, _ := strconv.ParseUint(m[2], 16, 64)
			hi, _ := strconv.ParseUint(m[3], 16, 64)
			if lo == hi {
				continue
			}
			r := commons[section+strings.TrimLeft(m[1], "0")]
			r.addr = lo
			r.haskell = section == ".debug_frame" && r.columns["CFA"] == "rbp+0"
			fde = &r
			previous = r
		case len(fields) > 1 && fields[0] == "LOC":
			names = fields[1:]
		case len(fields) == len(names)+1 && len(fields[0]) == 16:
			addr, err := strconv.ParseUint(fields[0], 16, 64)
			if err != nil {
				continue
			}
			r := readelfRow{addr: addr, columns: map[string]string{}}
			for i, name := range names {
				r.columns[name] = fields[i+1]
			}
			if cie != "" {
				commons[cie] = r
				continue
			}
			fde = nil
			r.haskell = previous.haskell
			if a, b := r.columns["rsp"], previous.columns["rsp"]; a != b && (b != "" || a != "s") {
				r.rspChanged = true
			}
			rows = append(rows, r)
			previous = r
		}
	}
	flush()
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// readelfRule converts a row. False: it has something that has no form as a Rule.
func readelfRule(r *readelfRow) (rule Rule, ok bool) {
	cfa := r.columns["CFA"]
	if cfa == "exp" {
		return rule, false
	}
	i := strings.IndexAny(cfa, "+-")
	if i < 0 {
		return rule, false
	}
	offset, err := strconv.ParseInt(cfa[i:], 10, 32)
	if err != nil {
		return rule, false
	}
	rule = Rule{Kind: KindFrame, Reg: amd64Names[cfa[:i]], Offset: int32(offset)}
	if r.haskell {
		rule.Kind = KindHaskell
		return rule, r.columns["ra"] == "c+0"
	}
	if r.columns["ra"] == "u" {
		return Rule{Kind: KindRoot}, true
	}
	for name, where := range r.columns {
		reg, known := amd64Names[name]
		slot := amd64.slot(uint64(reg))
		if !known || slot < 0 || where == "u" || where == "s" {
			continue
		}
		if name == "rsp" || !strings.HasPrefix(where, "c") {
			return rule, false
		}
		n, err := strconv.ParseInt(where[1:], 10, 64)
		if err != nil || n%8 != 0 {
			return rule, false
		}
		rule.Saved[slot] = int16(n / 8)
	}
	return rule, r.columns["rsp"] == "" || r.columns["rsp"] == "u" || r.columns["rsp"] == "s"
}

// Every row that binutils computes from a file's frame sections is in the table.
func TestAgainstReadelf(t *testing.T) {
	frameSectionsOnly := DefaultLimits
	frameSectionsOnly.Instructions = 0
	check := func(t *testing.T, path string) {
		table := compile(t, path, frameSectionsOnly)
		if table.Stats.Malformed != 0 {
			t.Errorf("%d malformed entries: %v", table.Stats.Malformed, table.Stats.FirstFault)
		}
		rows := readelfRows(t, path)
		last := map[uint64]int{} // of several rows at an address, the last holds
		for i := range rows {
			last[rows[i].addr] = i
		}
		compared, inexpressible, differ := 0, 0, 0
		for i := range rows {
			r := &rows[i]
			if last[r.addr] != i || r.haskell && r.rspChanged {
				continue
			}
			want, ok := readelfRule(r)
			if !ok {
				inexpressible++
				continue
			}
			compared++
			if got := table.Lookup(r.addr); got != want {
				if differ++; differ <= 5 {
					t.Errorf("at %#x: %v, readelf has %v (%v)", r.addr, got, want, r.columns)
				}
			}
		}
		if differ > 5 {
			t.Errorf("%d rows differ", differ)
		}
		if compared < 100 || inexpressible > compared/100 {
			t.Errorf("%d rows compared, %d have no form as a rule", compared, inexpressible)
		}
		t.Logf("%d rows compared, %d have no form that readelf prints", compared, inexpressible)
	}
	for _, path := range systemLibraries(t) {
		t.Run(path, func(t *testing.T) { check(t, path) })
	}
	t.Run("example", func(t *testing.T) { check(t, testprog.Build(t, "example", testprog.Options{})) })
}
