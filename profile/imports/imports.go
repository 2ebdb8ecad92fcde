package imports

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Format is a kind of file.
type Format uint8

const (
	Eventlog   Format = iota // not one of those below
	PProf                    // profile.proto
	PerfScript               // the text of perf script
)

// String names the format for users.
func (f Format) String() string {
	switch f {
	case PProf:
		return "pprof profile"
	case PerfScript:
		return "perf script text"
	}
	return "eventlog"
}

// Summary describes the result of an import.
type Summary struct {
	Format   Format
	Samples  uint64
	Passed   uint64   // number of lines that could not be parsed
	First    int      // line number of the first of them, from 1
	Duration uint64   // ns, as stated by the profile; 0 if it is not
	Comments []string // of a pprof profile
}

// ErrNoSamples is the error for input that has no sample.
var ErrNoSamples = errors.New("the profile has no samples")

// sniffed is the number of bytes from which the format is detected.
const sniffed = 16 << 10

// Open detects a file's format and decompresses it if needed. The reader returned starts
// at the beginning of the file.
func Open(r io.Reader) (Format, io.Reader, error) {
	b := bufio.NewReaderSize(r, sniffed)
	if head, _ := b.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := decompress(b)
		if err != nil {
			return 0, nil, err
		}
		b = bufio.NewReaderSize(z, sniffed)
	}
	head, err := b.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	return sniff(head), b, nil
}

func sniff(head []byte) Format {
	switch {
	case bytes.HasPrefix(head, []byte("hdrb")) || len(head) >= 8 && bytes.Equal(head[4:8], []byte("hetb")):
		return Eventlog
	case beginsProto(head):
		return PProf
	case beginsScript(head):
		return PerfScript
	}
	return Eventlog
}

// beginsProto reports whether the first fields could be a profile.proto's: its
// field numbers, with the wire types that these have.
func beginsProto(head []byte) bool {
	if len(head) == 0 {
		return false
	}
	// Sample types, samples, mappings, locations, functions and strings are
	// messages; the others are numbers. Packed and unpacked numbers are both known.
	for n := 0; n < 4 && len(head) > 0; n++ {
		field, wire := head[0]>>3, head[0]&7
		if field < 1 || field > 15 || wire != 0 && wire != 2 || field <= 6 && wire != 2 {
			return false
		}
		v, used := uvarint(head[1:])
		if used <= 0 {
			return len(head) < 12
		}
		head = head[1+used:]
		if wire == 2 {
			if v > uint64(len(head)) {
				return v < maxProfile
			}
			head = head[v:]
		}
	}
	return true
}

func uvarint(b []byte) (v uint64, used int) {
	for i, x := range b {
		if i == 10 {
			return 0, -1
		}
		v |= uint64(x&0x7f) << (7 * i)
		if x < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

// Write reads a profile of a format other than Eventlog and writes it as a log.
func Write(w io.Writer, f Format, r io.Reader) (Summary, error) {
	return write(w, f, r, defaultBudget())
}

func write(w io.Writer, f Format, r io.Reader, spend *budget) (Summary, error) {
	out := newLog(w, spend)
	s := Summary{Format: f}
	var err error
	switch f {
	case PProf:
		err = out.pprof(r, &s)
	case PerfScript:
		err = out.script(r, &s)
	default:
		err = fmt.Errorf("%s: not a format to import", f)
	}
	if err == nil {
		err = out.end()
	}
	if s.Samples = out.samples; err == nil && s.Samples == 0 {
		err = ErrNoSamples
	}
	return s, err
}
