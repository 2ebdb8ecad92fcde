package imports

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// ErrExpands is the error for a compressed file that grows too much.
var ErrExpands = errors.New("the file grows to more than 100 times its size when decompressed")

// Limits on what a compressed file may grow to. Profiles and logs shrink to about a
// tenth; deflate can shrink data to a thousandth.
const (
	maxExpansion  = 100
	freeExpansion = 64 << 20 // bytes that any file may grow to
)

// expanding reads the contents of a compressed file up to that limit.
type expanding struct {
	from countingReader
	gzip *gzip.Reader
	out  int64
}

// decompress reads a gzip file.
func decompress(r io.Reader) (io.Reader, error) {
	e := &expanding{from: countingReader{r: r}}
	z, err := gzip.NewReader(&e.from)
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	e.gzip = z
	return e, nil
}

func (e *expanding) Read(b []byte) (int, error) {
	if e.out > freeExpansion+maxExpansion*e.from.n {
		return 0, fmt.Errorf("decompress: %w; if that is right, decompress it first with gunzip", ErrExpands)
	}
	n, err := e.gzip.Read(b)
	e.out += int64(n)
	return n, err
}

// countingReader counts the bytes read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}
