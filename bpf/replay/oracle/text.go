package oracle

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Truth as text: "# comment" lines, then
//
//	thread 3  capability 0  top row  shift 2  pending 0x0
//	pc        0x408e6e  Main_zdwdown_info+0x16
//	return    0x408e98  Main_zdwdown_info+0x40
//	  1 frame, 199 times more
//	stop      0x4a80c8  stg_stop_thread_info
//
// The frames are leaf first. A line that begins with spaces repeats the frames above it. A
// Truth read from text has no Sp, Chunk, Rows and CStack.

// maxPeriod limits the length of a cycle that is written as a repetition.
const maxPeriod = 32

// WriteText writes a Truth; name describes addresses.
func (t *Truth) WriteText(w io.Writer, name func(uint64) string) error {
	b := bufio.NewWriter(w)
	for _, line := range strings.Split(t.Comment, "\n") {
		fmt.Fprintf(b, "# %s\n", line)
	}
	capability := "-"
	if t.Capability >= 0 {
		capability = strconv.Itoa(t.Capability)
	}
	fmt.Fprintf(b, "thread %d  capability %s  top %s  shift %d  pending %#x\n", t.TSO, capability, t.Top, t.Shift, t.Pending)
	for i := 0; i < len(t.Frames); {
		f := t.Frames[i]
		line := fmt.Sprintf("%-9s %#x  %s", f.Kind, f.Address, name(f.Address))
		if f.Kind == "context" {
			line = f.Kind
		}
		fmt.Fprintln(b, strings.TrimRight(line, " "))
		i++
		if period, times := t.repetition(i); times > 0 {
			plural := "s"
			if period == 1 {
				plural = ""
			}
			fmt.Fprintf(b, "  %d frame%s, %d times more\n", period, plural, times)
			i += period * times
		}
	}
	return b.Flush()
}

// repetition returns the shortest cycle of frames before i that is repeated from i on often
// enough that a line for it is shorter.
func (t *Truth) repetition(i int) (period, times int) {
	same := func(a, b int) bool {
		return t.Frames[a].Kind == t.Frames[b].Kind && t.Frames[a].Address == t.Frames[b].Address
	}
	for period = 1; period <= maxPeriod && period <= i; period++ {
		n := 0
		for i+n < len(t.Frames) && same(i+n, i+n-period) {
			n++
		}
		if times = n / period; times >= 2 {
			return period, times
		}
	}
	return 0, 0
}

// ReadText reads what WriteText wrote.
func ReadText(r io.Reader) (*Truth, error) {
	t := &Truth{}
	var comments []string
	var head bool
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		if text, ok := strings.CutPrefix(line, "# "); ok {
			comments = append(comments, text)
			continue
		}
		var err error
		switch {
		case !head:
			err = t.readHead(line)
			head = true
		case strings.HasPrefix(line, " "):
			err = t.readRepetition(line)
		default:
			err = t.readFrame(line)
		}
		if err != nil {
			return nil, fmt.Errorf("read golden stack: line %d: %w", n, err)
		}
	}
	t.Comment = strings.Join(comments, "\n")
	if s.Err() == nil && !head {
		return nil, fmt.Errorf("read golden stack: %w", io.ErrUnexpectedEOF)
	}
	return t, s.Err()
}

func (t *Truth) readHead(line string) error {
	var capability string
	if _, err := fmt.Sscanf(line, "thread %d capability %s top %s shift %d pending %v", &t.TSO, &capability, &t.Top, &t.Shift, &t.Pending); err != nil {
		return err
	}
	t.Capability = -1
	if capability != "-" {
		var err error
		if t.Capability, err = strconv.Atoi(capability); err != nil {
			return err
		}
	}
	return nil
}

func (t *Truth) readRepetition(line string) error {
	var period, times int
	var noun string
	if _, err := fmt.Sscanf(line, "%d %s %d times more", &period, &noun, &times); err != nil {
		return err
	}
	if period < 1 || times < 1 || period > len(t.Frames) || times > maxFrames/period {
		return fmt.Errorf("%d frames cannot be repeated %d times", period, times)
	}
	cycle := t.Frames[len(t.Frames)-period:]
	for range times {
		t.Frames = append(t.Frames, cycle...)
	}
	return nil
}

func (t *Truth) readFrame(line string) error {
	fields := strings.Fields(line)
	f := Frame{}
	switch len(fields) {
	case 0:
		return fmt.Errorf("empty")
	case 1:
		f.Kind = fields[0]
	default:
		address, err := strconv.ParseUint(fields[1], 0, 64)
		if err != nil {
			return err
		}
		f = Frame{Kind: fields[0], Address: address}
	}
	t.Frames = append(t.Frames, f)
	return nil
}
