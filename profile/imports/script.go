package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ccagent/eventlog"
)

const (
	maxLine       = 1 << 20  // bounds a line of text
	maxStackText  = 16 << 20 // bounds the text of all lines of a stack
	smallerScript = "print less, for example with perf script --time FROM,TO"
)

// beginsScript reports whether the first line that is not a comment is one of perf
// script's.
func beginsScript(head []byte) bool {
	for len(head) > 0 {
		line, rest, whole := bytes.Cut(head, []byte("\n"))
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' {
			return bytes.IndexByte(line, 0) < 0 && isHeader(string(bytes.TrimRight(line, "\r")))
		}
		if !whole {
			return false
		}
		head = rest
	}
	return false
}

// script reads the text of perf script and writes it to the log.
func (l *log) script(r io.Reader, s *Summary) error {
	in := &scriptImport{log: l, sum: s, events: make(map[string]uint32), comms: make(map[uint32]string)}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	for lines.Scan() {
		in.n++
		in.line(strings.TrimRight(lines.Text(), "\r"))
		if errors.Is(l.err, ErrTooLarge) {
			return fmt.Errorf("read perf script text: line %d: %w; %s", in.n, l.err, smallerScript)
		} else if l.err != nil {
			return l.err
		}
	}
	in.flush()
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("read perf script text: line %d: %w: more than %d KiB", in.n+1, ErrTooLarge, maxLine>>10)
	} else if err != nil {
		return fmt.Errorf("read perf script text: %w", err)
	}
	if in.any {
		s.Duration = in.last - in.first
	}
	return l.err
}

type scriptImport struct {
	*log
	sum    *Summary
	n      int // lines read
	events map[string]uint32
	comms  map[uint32]string

	open        bool // a sample is being read
	any         bool
	first, last uint64 // times of samples, ns
	time        uint64
	smp         eventlog.Sample
	stack       []frame // leaf first
	text        int     // bytes of the lines kept for the stack
	inlined     []line  // inlined functions of the next frame
	key         []byte  // key of the frame that is being written
}

func (in *scriptImport) line(text string) {
	switch {
	case strings.TrimSpace(text) == "":
		in.flush()
	case text[0] == '#':
	case text[0] == ' ' || text[0] == '\t':
		if !in.open || in.text+len(text) > maxStackText || !in.frame(text) && !in.source(text) {
			in.strange()
		}
	default:
		in.flush()
		if !in.header(text) {
			in.strange()
		}
	}
}

func (in *scriptImport) strange() {
	if in.sum.Passed++; in.sum.First == 0 {
		in.sum.First = in.n
	}
}

func (in *scriptImport) header(text string) bool {
	h, ok := parseHeader(text)
	if !ok {
		return false
	}
	sec, err1 := strconv.ParseUint(h.seconds, 10, 34)
	frac := (h.fraction + "000000000")[:9]
	nsec, err2 := strconv.ParseUint(frac, 10, 64)
	weight := uint64(1)
	var err3 error
	if h.period != "" {
		weight, err3 = strconv.ParseUint(h.period, 10, 64)
	}
	if err1 != nil || err2 != nil || err3 != nil {
		return false
	}
	in.time = sec*1_000_000_000 + nsec
	name := cut(h.event)
	id, ok := in.events[name]
	if !ok {
		name = strings.Clone(name)
		in.hold(costName + int64(len(name)))
		id = uint32(len(in.events))
		in.events[name] = id
		unit := eventUnit(name)
		in.write(0, &eventlog.EventDef{Index: id, Requested: name, Granted: name, Unit: unit, RateMode: eventlog.RatePeriod})
	}
	number := func(s string) uint32 {
		n, _ := strconv.ParseUint(s, 10, 32)
		return uint32(n)
	}
	in.smp = eventlog.Sample{Event: id, Weight: weight, Capability: eventlog.NoCapability, CPU: number(h.cpu), PID: number(h.pid), TID: number(h.pid)}
	if h.tid != "" {
		in.smp.TID = number(h.tid)
	}
	if comm := cut(h.comm); in.comms[in.smp.PID] != comm {
		in.hold(costName + int64(len(comm))) // a thread may change its name at every sample
		in.comms[in.smp.PID] = strings.Clone(comm)
		in.write(0, &eventlog.Process{Change: eventlog.ProcessSeen, PID: in.smp.PID, Comm: comm})
	}
	clear(in.stack)
	in.open, in.stack, in.inlined, in.text = true, in.stack[:0], nil, 0
	if h.frame != "" {
		in.frame(" " + h.frame)
	}
	return true
}

// eventUnit returns the unit of an event of perf: ns for clocks.
func eventUnit(name string) string {
	base, _, _ := strings.Cut(name, ":")
	switch base {
	case "cpu-clock", "task-clock":
		return "ns"
	case "cycles", "instructions", "cache-misses", "cache-references", "branches", "branch-misses", "page-faults", "context-switches":
		return base
	case "alloc":
		return "bytes"
	}
	return "events"
}

// maxStack bounds the number of frames of a sample.
const maxStack = 1 << 16

func (in *scriptImport) frame(text string) bool {
	address, symbol, ok := parseFrame(text)
	if !ok || len(in.stack) >= maxStack {
		return false
	}
	addr, err := strconv.ParseUint(address, 16, 64)
	if err != nil {
		return false
	}
	file := ""
	if i := lastParenthesis(symbol); i >= 0 {
		symbol, file = symbol[:i], symbol[i+1:len(symbol)-1]
	}
	symbol = strings.TrimSpace(symbol)
	if i := strings.LastIndex(symbol, "+0x"); i > 0 {
		if _, err := strconv.ParseUint(symbol[i+3:], 16, 64); err == nil {
			symbol = symbol[:i]
		}
	}
	in.text += len(text)
	if file == "inlined" {
		in.inlined = append(in.inlined, line{name: symbol})
		return true
	}
	f := frame{category: categoryOf(symbol), lines: append(in.inlined, line{name: symbol})}
	in.inlined = nil
	inner, bracket := strings.CutPrefix(symbol, "[")
	c, isCategory := categoryNamed(strings.TrimSuffix(inner, "]"))
	switch {
	case strings.HasPrefix(file, "[kernel") || strings.HasPrefix(file, "[guest.kernel") || addr >= 1<<63:
		f.category = eventlog.CategoryKernel
		if bracket && isCategory {
			f.lines = nil
		}
	case symbol == "" || symbol == "[unknown]":
		f.category, f.lines = eventlog.CategoryUnresolved, nil
		if file != "" && file != "[unknown]" {
			f.lines = []line{{name: fmt.Sprintf("%s+%#x", file, addr)}}
		}
	case bracket && isCategory:
		f.category = c
	}
	f.key = symbol + "\x00" + file + "\x00" + strconv.Itoa(int(f.category))
	in.stack = append(in.stack, f)
	return true
}

// source parses a line with the source position of the previous frame.
func (in *scriptImport) source(text string) bool {
	path, number, ok := parseSource(text)
	if !ok {
		return false
	}
	lines := in.inlined
	if n := len(in.stack); len(lines) == 0 && n > 0 {
		lines = in.stack[n-1].lines
	}
	if n := len(lines); n > 0 && path != "" {
		if at, err := strconv.ParseUint(number, 10, 31); err == nil {
			lines[n-1].file, lines[n-1].line = path, uint32(at)
		}
	}
	return true
}

// lastParenthesis returns the index of the opening parenthesis that matches the one at
// the end of s, or −1. Symbols and file names can contain parentheses:
// "f(int) (/lib/x (deleted))".
func lastParenthesis(s string) int {
	if !strings.HasSuffix(s, ")") {
		return -1
	}
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// flush writes the sample that was being read.
func (in *scriptImport) flush() {
	if !in.open {
		return
	}
	in.open = false
	node := uint32(0)
	for i := len(in.stack) - 1; i >= 0; i-- {
		f := &in.stack[i]
		in.key = append(in.key[:0], f.key...)
		for _, ln := range f.lines {
			in.key = append(append(append(in.key, 0), ln.name...), 0)
			in.key = strconv.AppendUint(append(append(in.key, ln.file...), 0), uint64(ln.line), 10)
		}
		f.key = string(in.key)
		node = in.node(node, f)
	}
	in.smp.Node = node
	in.smp.Stop = eventlog.StopRoot
	if len(in.stack) > 0 && in.stack[0].category == eventlog.CategoryKernel {
		in.smp.Flags = eventlog.SampleInKernel
	}
	if !in.any {
		in.any, in.first, in.last = true, in.time, in.time
	}
	// The log begins with the first sample. perf prints some samples out of order.
	in.last = max(in.last, in.time)
	in.sample(in.time-min(in.first, in.time), &in.smp)
}
