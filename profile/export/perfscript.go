package export

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// PerfScript writes the samples of all selections, ordered by time, as perf script
// prints samples with call chains:
//
//	comm pid/tid [cpu] seconds.micros: weight event:
//	<tab>address symbol (file)
//
// Readers of that text drop frames whose names begin with a parenthesis, so
// categories are in brackets: [GC], [unknown].
func PerfScript(w io.Writer, ss []*profile.Selection, _ Options) error {
	p := ss[0].Profile
	type row struct {
		sample
		index int // of the selection
		t     columns.ThreadKey
		cpu   uint32
	}
	var rows []sample
	var more []row
	for i, s := range ss {
		for site, smp := range s.EachSample() {
			rows = append(rows, sample{smp.Time, uint64(len(more)), site})
			more = append(more, row{sample{smp.Time, smp.Weight, site}, i, smp.Thread, smp.CPU})
		}
	}
	sortByTime(rows)
	out := bufio.NewWriterSize(w, 64<<10)
	comms := commandNames(p)
	files := make(map[uint32]string)
	for i := range p.Modules {
		files[p.Modules[i].ID] = p.Modules[i].Path
	}
	walkers := make([]*stacks.Walker, len(ss))
	for i, s := range ss {
		walkers[i] = stacks.NewWalker(s, true)
	}
	lines := make(map[stacks.Frame]string)
	for _, at := range rows {
		r := &more[at.weight]
		comm := comms[r.t.PID]
		if comm == "" {
			comm = perfComm(programName(p))
		}
		fmt.Fprintf(out, "%s %d/%d [%03d] %d.%06d: %d %s: \n", comm, r.t.PID, r.t.TID, r.cpu,
			r.time/1_000_000_000, r.time/1000%1_000_000, r.weight, perfEvent(ss[r.index].EventDef().Name()))
		for _, f := range stackOf(walkers[r.index], r.site) {
			line, ok := lines[f]
			if !ok {
				line = perfFrame(p, files, f)
				lines[f] = line
			}
			out.WriteString(line)
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}

// perfFrame returns a frame's line.
func perfFrame(p *profile.Profile, files map[uint32]string, f stacks.Frame) string {
	var addr uint64
	file := "[unknown]"
	if f.Place != 0 {
		module, a, ok := p.Place(f.Place)
		if addr = a; ok && module != 0 {
			file = files[module]
		} else if ok && f.Frame.Module == "kernel" {
			file = "[kernel.kallsyms]"
		}
	}
	return fmt.Sprintf("\t%16x %s (%s)\n", addr, perfSymbol(f.Frame.Name), perfFile(file))
}

// commandNames returns the processes' latest names by pid.
func commandNames(p *profile.Profile) map[uint32]string {
	m := make(map[uint32]string)
	for i := range p.Processes {
		if pr := &p.Processes[i]; pr.Comm != "" {
			m[pr.PID] = perfComm(pr.Comm)
		}
	}
	return m
}

// perfComm converts a command's name to one that readers recognise: it has at least two
// characters and no blanks.
func perfComm(s string) string {
	s = strings.Join(strings.Fields(strings.Map(printable, s)), "_")
	switch len(s) {
	case 0:
		return "[unknown]"
	case 1:
		return s + "_"
	}
	return s
}

func perfEvent(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == ':' {
			return '_'
		}
		return printable(r)
	}, s)
}

func perfFile(s string) string {
	if s = strings.Map(printable, s); s == "" {
		return "[unknown]"
	}
	return s
}

func perfSymbol(s string) string {
	s = strings.Map(printable, s)
	if s == "(unresolved)" || s == "" {
		return "[unknown]"
	}
	if inner, ok := strings.CutPrefix(s, "("); ok {
		if inner, ok = strings.CutSuffix(inner, ")"); ok {
			return "[" + inner + "]"
		}
		return "[" + inner
	}
	return s
}

func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return '_'
	}
	return r
}

// base returns a file's name without its folder.
func base(s string) string { return path.Base(s) }
