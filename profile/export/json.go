package export

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
)

// jsonWriter writes JSON incrementally, so that a document is never held in memory.
// Errors are kept until flush.
type jsonWriter struct {
	w       *bufio.Writer
	scratch []byte
	comma   bool // a comma goes before the next value
	err     error
}

func newJSONWriter(w io.Writer) *jsonWriter { return &jsonWriter{w: bufio.NewWriterSize(w, 64<<10)} }

// raw writes text unchanged. No comma separates it from what follows.
func (j *jsonWriter) raw(s string) {
	j.w.WriteString(s)
	j.comma = false
}

// next writes the comma between values.
func (j *jsonWriter) next() {
	if j.comma {
		j.w.WriteByte(',')
	}
	j.comma = true
}

// open begins an object or array; close ends it.
func (j *jsonWriter) open(bracket string) {
	j.next()
	j.raw(bracket)
}

func (j *jsonWriter) close(bracket string) {
	j.w.WriteString(bracket)
	j.comma = true
}

func (j *jsonWriter) key(name string) {
	j.value(name)
	j.raw(":")
}

// array writes a key and opens its array.
func (j *jsonWriter) array(name string) {
	j.key(name)
	j.open("[")
}

// value writes any value that encoding/json can encode.
func (j *jsonWriter) value(v any) {
	j.next()
	b, err := json.Marshal(v)
	if err != nil && j.err == nil {
		j.err = err
	}
	j.w.Write(b)
}

func (j *jsonWriter) field(name string, v any) {
	j.key(name)
	j.value(v)
}

func (j *jsonWriter) int(n int64) {
	j.next()
	j.scratch = strconv.AppendInt(j.scratch[:0], n, 10)
	j.w.Write(j.scratch)
}

func (j *jsonWriter) uint(n uint64) {
	j.next()
	j.scratch = strconv.AppendUint(j.scratch[:0], n, 10)
	j.w.Write(j.scratch)
}

// millis writes a time in ns as milliseconds, with up to six decimals.
func (j *jsonWriter) millis(ns uint64) {
	j.next()
	b := strconv.AppendUint(j.scratch[:0], ns/1_000_000, 10)
	if frac := ns % 1_000_000; frac != 0 {
		b = append(b, '.')
		for unit := uint64(100_000); frac > 0; unit /= 10 {
			b = append(b, byte('0'+frac/unit))
			frac %= unit
		}
	}
	j.scratch = b
	j.w.Write(b)
}

func (j *jsonWriter) flush() error {
	if j.err != nil {
		return j.err
	}
	return j.w.Flush()
}
