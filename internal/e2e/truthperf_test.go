package e2e

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// perfShares runs a program under perf, and gives the share of its samples by codeNames'
// names; "(kernel)" and "(C)" are the rest. Samples that nothing resolves are "?".
func perfShares(t *testing.T, program, sources string, args []string) (shares map[string]float64, samples int) {
	t.Helper()
	perf := testprog.NeedTool(t, "perf", "linux-perf")
	data := filepath.Join(t.TempDir(), "perf.data")
	if r := run(t, command(t, perf, append([]string{"record", "-q", "-F", "487", "-e", "cpu-clock", "-o", data, "--", program}, args...)...)); r.status != 0 {
		t.Fatalf("perf record: status %d\n%s", r.status, r.stderr)
	}
	r := run(t, command(t, perf, "script", "-i", data, "--show-mmap-events", "-F", "comm,pid,tid,event,ip"))
	if r.status != 0 {
		t.Fatalf("perf script: status %d\n%s", r.status, r.stderr)
	}
	var maps []mapping
	at := map[string]map[uint64]int{} // by object: samples by its own addresses
	counts := map[string]int{}
	for line := range strings.Lines(r.stdout) {
		if m := mapLine.FindStringSubmatch(line); m != nil {
			maps = append(maps, mapping{hex(m[1]), hex(m[2]), hex(m[3]), m[4]})
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		samples++
		ip := hex(m[1])
		i := slices.IndexFunc(maps, func(m mapping) bool { return ip >= m.start && ip-m.start < m.size && strings.HasPrefix(m.path, "/") })
		switch {
		case ip>>63 != 0:
			counts["(kernel)"]++
		case i < 0:
			counts["?"]++
		default:
			path := maps[i].path
			if at[path] == nil {
				at[path] = map[uint64]int{}
			}
			at[path][ip-maps[i].start+maps[i].offset]++
		}
	}
	for path, offsets := range at {
		for offset, name := range codeNames(t, path, program, sources, offsets) {
			counts[name] += offsets[offset]
		}
	}
	shares = map[string]float64{}
	for name, n := range counts {
		shares[name] = float64(n) / float64(samples)
	}
	return shares, samples
}

type mapping struct {
	start, size, offset uint64
	path                string
}

var (
	mapLine    = regexp.MustCompile(`PERF_RECORD_MMAP2? .*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: r-x[ps] (\S+)`)
	sampleLine = regexp.MustCompile(`cpu-clock:\S*\s+([0-9a-f]+)\s*$`)
)

func hex(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	return n
}

// codeNames names the code at offsets into an object: Module.binding for the program's own,
// from binutils' reading of its line tables and the sources, else the module of the nearest
// symbol before.
func codeNames(t *testing.T, path, program, sources string, offsets map[uint64]int) map[uint64]string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	address := map[uint64]uint64{}
	var asked []uint64
	for offset := range offsets {
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && offset >= p.Off && offset-p.Off < p.Filesz {
				address[offset] = offset - p.Off + p.Vaddr
				asked = append(asked, offset)
			}
		}
	}
	slices.Sort(asked)
	own := make([]string, len(asked))
	if path == program {
		addresses := make([]uint64, len(asked))
		for i, offset := range asked {
			addresses[i] = address[offset]
		}
		own = ownBindings(t, path, sources, addresses)
	}
	symbols := symbolsOf(f)
	names := map[uint64]string{}
	for i, offset := range asked {
		if names[offset] = own[i]; own[i] == "" {
			names[offset] = moduleOfSymbol(symbols.before(address[offset]))
		}
	}
	return names
}

// ownBindings gives the top-level binding in whose source each address lies, by addr2line
// and the text of the sources; "" where there is none.
func ownBindings(t *testing.T, program, sources string, addresses []uint64) []string {
	t.Helper()
	var in strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.Command(testprog.NeedTool(t, "addr2line", "binutils"), "-e", program)
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]string{} // the binding of each line, by file
	var names []string
	for line := range strings.Lines(string(out)) {
		file, number, _ := strings.Cut(strings.TrimSpace(line), ":")
		number, _, _ = strings.Cut(number, " ")
		name := ""
		if n, err := strconv.Atoi(number); err == nil && filepath.Ext(file) == ".hs" {
			base := filepath.Base(file)
			if texts[base] == nil {
				texts[base] = bindingsByLine(t, filepath.Join(sources, base))
			}
			if of := texts[base]; n >= 1 && n <= len(of) && of[n-1] != "" {
				name = strings.TrimSuffix(base, ".hs") + "." + of[n-1]
			}
		}
		names = append(names, name)
	}
	if len(names) != len(addresses) {
		t.Fatalf("addr2line answered %d of %d addresses", len(names), len(addresses))
	}
	return names
}

var definition = regexp.MustCompile(`^([a-z_][A-Za-z0-9_']*)\b.*[=|]?`)

// bindingsByLine gives for each line of a source file the top-level binding whose
// definition it is part of.
func bindingsByLine(t *testing.T, path string) (of []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	now := ""
	for line := range strings.Lines(string(data)) {
		if line[0] != ' ' && line[0] != '\n' && line[0] != '\t' && !strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "}") {
			now = ""
			if m := definition.FindStringSubmatch(line); m != nil && !keyword[m[1]] {
				now = m[1]
			}
		}
		of = append(of, now)
	}
	return of
}

var keyword = map[string]bool{"module": true, "import": true, "data": true, "type": true, "newtype": true, "class": true, "instance": true, "infixl": true, "infixr": true, "infix": true, "foreign": true, "deriving": true, "default": true}

type symbolList []elf.Symbol

func symbolsOf(f *elf.File) symbolList {
	all, _ := f.Symbols()
	dynamic, _ := f.DynamicSymbols()
	all = slices.DeleteFunc(append(all, dynamic...), func(s elf.Symbol) bool {
		kind := elf.ST_TYPE(s.Info)
		return s.Section == elf.SHN_UNDEF || s.Name == "" || kind == elf.STT_SECTION || kind == elf.STT_FILE || kind == elf.STT_TLS
	})
	slices.SortStableFunc(all, func(a, b elf.Symbol) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
	return all
}

func (l symbolList) before(address uint64) string {
	i := sort.Search(len(l), func(i int) bool { return l[i].Value > address })
	if i == 0 {
		return ""
	}
	return l[i-1].Name
}

var haskellSymbol = regexp.MustCompile(`^(?:([a-z][A-Za-z0-9]*)_)?([A-Z][A-Za-z0-9]*)_.*_(?:info|entry|closure|fast|slow|con_info|static_info|str|bytes)$`)

// moduleOfSymbol decodes package_Module_name_info as far as dots; anything else is C's, but
// for what has Haskell's own shape without a module.
func moduleOfSymbol(name string) string {
	if m := haskellSymbol.FindStringSubmatch(name); m != nil {
		return strings.ReplaceAll(m[2], "zi", ".")
	}
	switch {
	case name == "", strings.HasSuffix(name, "_info"), strings.HasPrefix(name, "stg_"):
		return "?"
	}
	return "(C)"
}

// timeClaims compares the modules in which perf's samples lie with hot's.
func timeClaims(t *testing.T, p truthProgram, w truthWay) (claims []claim) {
	t.Helper()
	exe := p.build(t, w)
	shares, n := perfShares(t, exe, testprog.Source(t, p.program), p.arguments(w))
	log, _ := record(t, nil, exe, p.arguments(w)...)
	ours, samples, _ := hotRows(t, log, "cycles")
	for _, name := range largest(shares, 10) {
		if name == "?" || name == "(C)" {
			continue
		}
		claims = append(claims, ours[name].claim("time (perf)", name, shares[name], binomial(shares[name], n), samples))
	}
	return claims
}

// hotRows gives the rows of hot: bindings of the program, modules of libraries, categories.
func hotRows(t *testing.T, log, event string) (rows map[string]hotRow, samples int, total float64) {
	t.Helper()
	rows = map[string]hotRow{}
	for _, level := range []string{"module", "binding"} {
		var hot hotJSON
		view(t, &hot, "hot", log, "--event", event, "--level", level, "--top", "10000")
		for _, r := range hot.Rows {
			rows[r.Element] = r
		}
		samples, total = hot.Samples, hot.Total
	}
	return rows, samples, total
}

// claim compares a row of hot with an oracle's share.
func (r hotRow) claim(quantity, name string, oracle, err float64, samples int) claim {
	c := claim{quantity: quantity, row: name, oracle: oracle, error: err, ours: r.Share, low: r.Low, high: r.High}
	if r.Element == "" {
		// No sample: the rule of three.
		c.high = 3 / float64(max(samples, 1))
	}
	if r.Only < r.Share {
		c.overlap, c.low = true, r.Low-(r.Share-r.Only)
	}
	return c
}

// largest gives the names of the n largest shares of at least a thousandth.
func largest(shares map[string]float64, n int) []string {
	var names []string
	for name, share := range shares {
		if share >= 0.001 {
			names = append(names, name)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		if shares[names[i]] != shares[names[j]] {
			return shares[names[i]] > shares[names[j]]
		}
		return names[i] < names[j]
	})
	return names[:min(n, len(names))]
}
