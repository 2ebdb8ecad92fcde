package e2e

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// recordUnderPerf has perf and ccagent sample the same run, and gives ccagent's log, and the
// share of perf's samples by codeNames' names; "(kernel)" and "(C)" are the rest. Samples that
// nothing resolves are "?".
func recordUnderPerf(t *testing.T, flags []string, program string, sources *sourceTexts, args []string) (log string, shares map[string]float64, samples int) {
	t.Helper()
	perf := testprog.NeedTool(t, "perf", "linux-perf")
	dir := t.TempDir()
	data := filepath.Join(dir, "perf.data")
	log = filepath.Join(dir, "run.eventlog")
	argv := slices.Concat([]string{"record", "-q", "-F", "487", "-e", "cpu-clock", "-o", data, "--", ccagent, "record", "-o", log}, flags, []string{"--", program}, args)
	if r := run(t, command(t, perf, argv...)); r.status != 0 {
		t.Fatalf("perf record: status %d\n%s", r.status, r.stderr)
	}
	r := run(t, command(t, perf, "script", "-i", data, "--show-mmap-events", "-F", "comm,pid,tid,event,ip,sym"))
	if r.status != 0 {
		t.Fatalf("perf script: status %d\n%s", r.status, r.stderr)
	}
	pid := "" // of the program, since it was executed
	var maps []mapping
	at := map[string]map[uint64]int{} // by object: samples by its own addresses
	counts := map[string]int{}
	// A timer of perf's that fell due while its thread was not running hits where the kernel has
	// switched it in, as one does that fell due during the switch, which is time of the thread's:
	// perf does not say how many are which.
	switching := 0
	for line := range strings.Lines(r.stdout) {
		if m := mapLine.FindStringSubmatch(line); m != nil {
			if m[5] == program {
				pid = m[1]
			}
			if m[1] == pid {
				maps = append(maps, mapping{hex(m[2]), hex(m[3]), hex(m[4]), m[5]})
			}
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil || m[1] != pid {
			continue
		}
		if strings.HasPrefix(m[3], "finish_task_switch") {
			switching++
			continue
		}
		samples++
		ip := hex(m[2])
		i := slices.IndexFunc(maps, func(m mapping) bool {
			return ip >= m.start && ip-m.start < m.size && strings.HasPrefix(m.path, "/")
		})
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
	if samples == 0 {
		t.Fatal("perf has no sample of the program")
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
	shares["? switching"] = float64(switching) / float64(samples+switching)
	return log, shares, samples
}

type mapping struct {
	start, size, offset uint64
	path                string
}

var (
	mapLine    = regexp.MustCompile(`PERF_RECORD_MMAP2? (\d+)/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: r-x[ps] (\S+)`)
	sampleLine = regexp.MustCompile(`\s(\d+)/\d+\s+cpu-clock:\S*\s+([0-9a-f]+)(?:\s+(\S+))?`)
)

func hex(s string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	return n
}

// codeNames names the code at offsets into an object: Module.binding for the program's own,
// from the lines of its code and the sources, else the module of the nearest
// symbol before.
func codeNames(t *testing.T, path, program string, sources *sourceTexts, offsets map[uint64]int) map[uint64]string {
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
		own = ownBindings(t, f, sources, addresses)
	}
	symbols := symbolsOf(f)
	names := map[uint64]string{}
	for i, offset := range asked {
		if names[offset] = own[i]; own[i] == "" {
			names[offset] = moduleOfSymbol(symbols.before(address[offset]))
			if path == program && sources.has(names[offset]) {
				names[offset] = "? of its own"
			}
		}
	}
	return names
}

// ownBindings gives the top-level binding in whose source each address lies, by the standard
// library's reading of procedures and lines and the text of the sources; "" where there is
// none, and "? of its own" where it is not known which. addr2line will not do: for a procedure that has
// no lines it gives the last line of the procedure before.
func ownBindings(t *testing.T, f *elf.File, sources *sourceTexts, addresses []uint64) []string {
	t.Helper()
	names := make([]string, len(addresses))
	d, err := f.DWARF()
	if err != nil {
		return names
	}
	procedures, lines := readProcedures(t, d)
	byLine := func(p procedure, address uint64) string {
		i := sort.Search(len(lines), func(i int) bool { return lines[i].address > address }) - 1
		if i < 0 || lines[i].address < p.low || lines[i].file == "" {
			return ""
		}
		return sources.of(lines[i].file).binding(lines[i].line)
	}
	at := map[dwarf.Offset]int{}
	for i, p := range procedures {
		at[p.offset] = i
	}
	for k, address := range addresses {
		i := sort.Search(len(procedures), func(i int) bool { return procedures[i].low > address }) - 1
		if i < 0 || address >= procedures[i].high {
			continue
		}
		p := procedures[i]
		if names[k] = byLine(p, address); names[k] != "" {
			continue
		}
		names[k] = "? of its own"
		// Of a procedure without lines those that enclose it may say.
		for range 20 {
			if of := sources.of(p.file); of != nil && slices.Contains(of.bindings, p.name) {
				names[k] = of.module + "." + p.name
				break
			}
			parent, found := at[p.parent]
			if !found {
				break
			}
			p = procedures[parent]
			if name := byLine(p, p.high-1); name != "" {
				names[k] = name
				break
			}
		}
	}
	return names
}

type procedure struct {
	offset, parent dwarf.Offset
	low, high      uint64
	name, file     string
}

type lineRow struct {
	address uint64
	file    string
	line    int
}

// readProcedures reads all of GHC's procedures and lines, by address.
func readProcedures(t *testing.T, d *dwarf.Data) (procedures []procedure, lines []lineRow) {
	t.Helper()
	const tickParent = dwarf.Attr(0x2b20) // GHC's own
	r := d.Reader()
	file := ""
	for {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			break
		}
		switch e.Tag {
		case dwarf.TagCompileUnit:
			file, _ = e.Val(dwarf.AttrName).(string)
			if !isHaskell(file) {
				r.SkipChildren()
				continue
			}
			lr, err := d.LineReader(e)
			if err != nil || lr == nil {
				continue
			}
			var row dwarf.LineEntry
			for lr.Next(&row) == nil {
				l := lineRow{address: row.Address}
				if !row.EndSequence && row.File != nil && isHaskell(row.File.Name) {
					l.file, l.line = row.File.Name, row.Line
				}
				lines = append(lines, l)
			}
		case dwarf.TagSubprogram:
			low, isLow := e.Val(dwarf.AttrLowpc).(uint64)
			high, isHigh := e.Val(dwarf.AttrHighpc).(uint64)
			if !isLow || !isHigh {
				continue
			}
			name, _ := e.Val(dwarf.AttrName).(string)
			parent, _ := e.Val(tickParent).(dwarf.Offset)
			procedures = append(procedures, procedure{e.Offset, parent, low, high, name, file})
		}
	}
	slices.SortFunc(procedures, func(a, b procedure) int { return cmp.Compare(a.low, b.low) })
	// Up to GHC 9.0 a procedure ends with its first block, by its own account.
	for i := range procedures[:max(len(procedures), 1)-1] {
		if p := &procedures[i]; p.file == procedures[i+1].file {
			p.high = procedures[i+1].low
		}
	}
	slices.SortStableFunc(lines, func(a, b lineRow) int { return cmp.Compare(a.address, b.address) })
	return procedures, lines
}

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
	m := haskellSymbol.FindStringSubmatch(name)
	switch {
	case name == "", strings.HasPrefix(name, "stg_"):
		return "?"
	case m != nil:
		return strings.ReplaceAll(m[2], "zi", ".")
	case strings.HasSuffix(name, "_info"):
		return "?"
	}
	return "(C)"
}

// timeClaims compares the modules in which perf's samples lie with hot's.
func timeClaims(t *testing.T, p truthProgram, w truthWay) (claims []claim) {
	t.Helper()
	exe := p.build(t, w)
	sources := p.sources(t)
	log, shares, n := recordUnderPerf(t, nil, exe, sources, p.arguments(w))
	ours, samples, _ := hotRows(t, log, "cycles")
	for _, name := range largest(shares, 10) {
		if strings.HasPrefix(name, "?") || name == "(C)" {
			continue
		}
		// If all that hit in switches of threads was time of the thread's, all else has less.
		share, switching := shares[name], shares["? switching"]
		c := ours[name].claim("time (perf)", name, share*(1-switching), binomial(share, n), samples)
		c.Unknown = share*switching + unknown(name, sources, shares)
		if name == "(kernel)" {
			c.Oracle, c.Unknown = share, (1-share)*switching
		}
		claims = append(claims, c)
	}
	return claims
}

// unknown gives what more a row may have: code of the program's own that has no place in the
// sources may be any binding's, other code without a name only that of a library.
func unknown(name string, sources *sourceTexts, shares map[string]float64) float64 {
	switch {
	case strings.HasPrefix(name, "("):
		return 0
	case sources.owns(name):
		return shares["? of its own"]
	}
	return shares["? of its own"] + shares["?"]
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
	c := claim{Quantity: quantity, Row: name, Oracle: oracle, Error: err, Ours: r.Share, Low: r.Low, High: r.High}
	if r.Element == "" {
		// No sample: the rule of three.
		c.High = 3 / float64(max(samples, 1))
	}
	if r.Only < r.Share {
		c.Overlap, c.Low = true, r.Low-(r.Share-r.Only)
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
