package hwtest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// A result is sent over the console, which the kernel also writes to, as separate lines:
// each begins with a marker and ends with a checksum of its text.
const (
	markLine  = "@hw "  // a part of a result: base64 of the gzip of its JSON
	markEnd   = "@end " // of a result: its length in bytes
	lineBytes = 3 * 256 // of data; a multiple of three needs no padding
)

// Begun is the first line that a guest writes.
const Begun = "@begun"

// maxResult limits the bytes read from a console.
const maxResult = 256 << 20

// SendResult writes a result to the console.
func SendResult(w io.Writer, r *Result) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := json.NewEncoder(zip).Encode(r); err != nil {
		return fmt.Errorf("send result of %s: %w", r.Name, err)
	}
	if err := zip.Close(); err != nil {
		return fmt.Errorf("send result of %s: %w", r.Name, err)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	data := packed.Bytes()
	for part := range slices.Chunk(data, lineBytes) {
		out.WriteString(checked(markLine, base64.StdEncoding.EncodeToString(part)))
	}
	out.WriteString(checked(markEnd, fmt.Sprint(len(data))))
	if err := out.Flush(); err != nil {
		return fmt.Errorf("send result of %s: %w", r.Name, err)
	}
	return nil
}

func checked(mark, text string) string {
	return fmt.Sprintf("%s%s %08x\n", mark, text, crc32.ChecksumIEEE([]byte(text)))
}

// ErrConsole is returned for a result that arrived damaged.
var ErrConsole = errors.New("garbled console")

// Results reads the results that the guest sent; notes is called with every other line.
// Results before an error are returned too.
func Results(console io.Reader, notes func(line string)) ([]Result, error) {
	var results []Result
	var packed []byte
	in := bufio.NewScanner(console)
	in.Buffer(make([]byte, 1<<16), 1<<20)
	for in.Scan() {
		line := strings.TrimRight(in.Text(), "\r")
		// An unfinished line of the kernel may precede ours.
		if i := strings.Index(line, markLine); i >= 0 {
			text, err := verify(line[i+len(markLine):])
			if err != nil {
				return results, err
			}
			part, err := base64.StdEncoding.DecodeString(text)
			if err != nil || len(packed)+len(part) > maxResult {
				return results, fmt.Errorf("%w: bad line of data", ErrConsole)
			}
			packed = append(packed, part...)
			continue
		}
		if i := strings.Index(line, markEnd); i >= 0 {
			text, err := verify(line[i+len(markEnd):])
			if err != nil {
				return results, err
			}
			if text != fmt.Sprint(len(packed)) {
				return results, fmt.Errorf("%w: %d bytes of %s", ErrConsole, len(packed), text)
			}
			r, err := unpack(packed)
			if err != nil {
				return results, err
			}
			results, packed = append(results, r), packed[:0]
			continue
		}
		notes(line)
	}
	if err := in.Err(); err != nil {
		return results, fmt.Errorf("%w: %w", ErrConsole, err)
	}
	if len(packed) > 0 {
		return results, fmt.Errorf("%w: it ends within a result", ErrConsole)
	}
	return results, nil
}

func verify(line string) (string, error) {
	text, sum, ok := strings.Cut(line, " ")
	if !ok || sum != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) {
		return "", fmt.Errorf("%w: wrong checksum in %.80q", ErrConsole, line)
	}
	return text, nil
}

func unpack(packed []byte) (r Result, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrConsole, err)
	}
	if err := json.NewDecoder(io.LimitReader(zip, 4*maxResult)).Decode(&r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrConsole, err)
	}
	return r, nil
}
