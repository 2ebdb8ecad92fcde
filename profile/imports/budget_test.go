package imports

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"
)

// allocated runs f and returns the bytes that it allocated, an upper bound of what it held
// at any time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// crafted lists profiles full of one kind of element, which is small in the file and
// larger in memory.
var crafted = map[string]func(n int) []byte{
	"samples":           func(n int) []byte { return profileOf(n, func(int) []byte { return field(fieldSample) }) },
	"numbered mappings": func(n int) []byte { return profileOf(n, func(i int) []byte { return field(3, number(1, 1<<40+i)...) }) },
	"numbered locations": func(n int) []byte {
		return profileOf(n, func(i int) []byte { return field(fieldLocation, number(1, 1<<40+i)...) })
	},
	"numbered functions": func(n int) []byte { return profileOf(n, func(i int) []byte { return field(5, number(1, 1<<40+i)...) }) },
	"strings":            func(n int) []byte { return profileOf(n, func(int) []byte { return field(fieldString) }) },
	"sample types":       func(n int) []byte { return profileOf(n, func(int) []byte { return field(1) }) },
	"comments":           func(n int) []byte { return append(profileOf(0, nil), field(fieldComment, make([]byte, n)...)...) },
	"lines of one location": func(n int) []byte {
		return append(profileOf(0, nil), field(fieldLocation, bytes.Repeat(field(fieldLine), n)...)...)
	},
	"locations of one sample": func(n int) []byte {
		return append(profileOf(0, nil), field(fieldSample, field(fieldSampleLocation, make([]byte, n)...)...)...)
	},
	"values one by one": func(n int) []byte {
		return append(profileOf(0, nil), field(fieldSample, bytes.Repeat([]byte{fieldSampleValue << 3, 1}, n)...)...)
	},
	"labels of one sample": func(n int) []byte {
		var labels []byte
		for i := range n {
			labels = append(labels, field(fieldSampleLabel, append(number(1, i), number(3, 1)...)...)...)
		}
		return append(profileOf(n, func(i int) []byte { return field(fieldString, fmt.Append(nil, i)...) }), field(fieldSample, labels...)...)
	},
	"samples with labels": func(n int) []byte {
		return profileOf(n, func(int) []byte { return field(fieldSample, field(fieldSampleLabel, number(2, 1)...)...) })
	},
}

// profileOf returns a profile with an event, a string and n elements.
func profileOf(n int, element func(i int) []byte) []byte {
	b := append(field(1, append(number(1, 1), number(2, 1)...)...), field(fieldString)...)
	b = append(b, field(fieldString, 'x')...)
	for i := range n {
		b = append(b, element(i)...)
	}
	return b
}

func field(number int, payload ...byte) []byte {
	b := binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(len(payload)))
	return append(b, payload...)
}

func number(field, v int) []byte { return binary.AppendUvarint([]byte{byte(field << 3)}, uint64(v)) }

// The estimate of a profile's memory is at least what decoding takes, for every kind of
// element that a crafted profile can be full of.
func TestDecodedSizeCoversAllocations(t *testing.T) {
	for name, make := range crafted {
		t.Run(name, func(t *testing.T) {
			in := make(100_000)
			estimate := decodedSize(in)
			got := allocated(func() {
				_, err := write(io.Discard, PProf, bytes.NewReader(in), &budget{memory: math.MaxInt64, names: math.MaxInt64})
				if errors.Is(err, ErrTooLarge) {
					t.Error(err)
				}
			})
			// Growing slices leave garbage: the total allocated is up to twice what is
			// held at the end. Reading allocates a few times the input's size.
			if limit := 2*uint64(estimate) + 4*uint64(len(in)) + 1<<20; got > limit {
				t.Errorf("%d bytes of profile are estimated at %d bytes and allocate %d", len(in), estimate, got)
			}
		})
	}
}

// A profile beyond the budget is refused before it is decoded.
func TestCraftedProfilesAreRefused(t *testing.T) {
	const memory = 4 << 20
	for name, make := range crafted {
		t.Run(name, func(t *testing.T) {
			in := make(200_000)
			var err error
			got := allocated(func() {
				_, err = write(io.Discard, PProf, bytes.NewReader(in), &budget{memory: memory, names: math.MaxInt64})
			})
			if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "go tool pprof") {
				t.Errorf("%v", err)
			}
			if limit := 4*uint64(len(in)) + 1<<20; got > limit {
				t.Errorf("%d bytes of profile allocate %d before they are refused", len(in), got)
			}
		})
	}
}

// A name that many functions share is examined for each of them, and the budget counts
// each time.
func TestSharedNamesAreCounted(t *testing.T) {
	in := profileOf(0, nil)
	in = append(in, field(fieldString, bytes.Repeat([]byte("A."), maxName/2)...)...)
	in = append(in, field(fieldSample, append(field(fieldSampleLocation, 1), field(fieldSampleValue, 1)...)...)...)
	var lines []byte
	for i := 1; i <= 100; i++ {
		in = append(in, field(5, append(number(1, i), number(2, 2)...)...)...)
		lines = append(lines, field(fieldLine, number(1, i)...)...)
	}
	in = append(in, field(fieldLocation, append(number(1, 1), lines...)...)...)
	if _, err := write(io.Discard, PProf, bytes.NewReader(in), &budget{memory: math.MaxInt64, names: 100 * maxName}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("100 functions of a name of %d bytes: %v", maxName, err)
	}
	if _, err := write(io.Discard, PProf, bytes.NewReader(in), defaultBudget()); err != nil {
		t.Error(err)
	}
}

// A small gzip file with an endless profile, log or text is refused after reading an
// amount proportional to its size.
func TestGzipBombs(t *testing.T) {
	for name, unit := range map[string]string{
		"pprof":       "\x12\x00",
		"perf script": "p 1 1.0: c: \n\t 1 f (x)\n\n#" + strings.Repeat(" ", 1000) + "\n",
		"nothing":     "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			var zipped bytes.Buffer
			z, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed)
			if name == "pprof" {
				z.Write(profileOf(0, nil))
			}
			chunk := []byte(strings.Repeat(unit, 1<<20/len(unit)))
			for range 240 {
				z.Write(chunk)
			}
			z.Close()
			limit := int64(freeExpansion + maxExpansion*zipped.Len() + 1<<20)
			f, r, err := Open(&zipped)
			if err != nil {
				t.Fatal(err)
			}
			in := &countingReader{r: r}
			held := allocated(func() {
				switch f {
				case PProf:
					_, err = Write(io.Discard, f, in)
				case PerfScript: // the memory for a line is released after the line
					_, err = Write(io.Discard, f, in)
				default:
					_, err = io.Copy(io.Discard, in)
				}
			})
			if !errors.Is(err, ErrExpands) || in.n > limit {
				t.Errorf("%v after %d bytes of at most %d", err, in.n, limit)
			}
			if f == PProf && held > 6*uint64(limit) {
				t.Errorf("%d bytes allocated for %d", held, in.n)
			}
		})
	}
}

// A text whose stacks, names and events never repeat is refused when the data kept from it
// exceeds the budget.
func TestCraftedScriptsAreRefused(t *testing.T) {
	long := strings.Repeat("x", 2*maxName)
	for name, line := range map[string]func(i int) string{
		"stacks":        func(i int) string { return fmt.Sprintf("p 1 1.0: c: \n\t 1 f%d (x)\n\n", i) },
		"long symbols":  func(i int) string { return fmt.Sprintf("p 1 1.0: c: \n\t 1 f%d%s (x)\n\n", i, long) },
		"inlined lines": func(i int) string { return first(i, "p 1 1.0: c: \n") + fmt.Sprintf("\t 1 f%d%s (inlined)\n", i, long) },
		"frames":        func(i int) string { return first(i, "p 1 1.0: c: \n") + fmt.Sprintf("\t 1 f%d%s (x)\n", i, long) },
		"commands":      func(i int) string { return fmt.Sprintf("p%d%s %d 1.0: c: \n\n", i, long, i) },
		"events":        func(i int) string { return fmt.Sprintf("p 1 1.0: c%d%s: \n\n", i, long) },
	} {
		t.Run(name, func(t *testing.T) {
			in := &generated{line: line, left: 64 << 20}
			spend := &budget{memory: 4 << 20, names: math.MaxInt64}
			sum, err := write(io.Discard, PerfScript, in, spend)
			switch name {
			case "inlined lines", "frames": // of one sample: the excess is skipped
				if err != nil && !errors.Is(err, ErrTooLarge) || err == nil && sum.Passed == 0 {
					t.Errorf("%v, %+v", err, sum)
				}
			default:
				if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "perf script --time") {
					t.Errorf("%v, %+v, %d bytes left", err, sum, in.left)
				}
			}
		})
	}
}

func first(i int, s string) string {
	if i > 0 {
		return ""
	}
	return s
}

// generated is a reader of a text that is generated while it is read.
type generated struct {
	line func(i int) string
	i    int
	left int
	rest string
}

func (g *generated) Read(b []byte) (int, error) {
	if g.rest == "" {
		if g.left <= 0 {
			return 0, io.EOF
		}
		g.rest = g.line(g.i)
		g.i++
		g.left -= len(g.rest)
	}
	n := copy(b, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}
