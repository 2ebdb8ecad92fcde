package worker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"ccagent/symbolize"
	"ccagent/symbolize/core"
)

// File descriptors of the child. Module files follow.
const (
	fdJob     = 3 // a request, as JSON, to its end
	fdEvents  = 4 // the child's events, as an eventlog
	fdAsk     = 5 // the child asks for source files …
	fdAnswer  = 6 // … and is answered
	fdModules = 7
)

// childVariable marks a process as a worker's child.
const childVariable = "CCAGENT_SYMBOLIZE_CHILD"

// request is a job without its files, which come as descriptors.
type request struct {
	Modules     []requestModule
	Kernel      []symbolize.Address
	Kallsyms    int // descriptor; 0 is none
	EmbedSource bool
	AskSource   bool // the parent reads sources
	SourceDirs  []string
	CoreDirs    []string
	CacheDir    string
	SymbolsOnly bool
	After       symbolize.IDs
	Memory      uint64
	Timeout     time.Duration
}

type requestModule struct {
	ID        uint32
	Path      string
	File      int // descriptor; 0 is none
	Size      int64
	ModTime   time.Time
	Debug     int
	DebugSize int64
	Problem   string
	Addresses []symbolize.Address
	Root      int // descriptor of the root directory that the program had
}

// maxSummary bounds what the child says on its standard output.
const maxSummary = 1 << 20

func writeJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// Sources cross the pipes as: the path's length and the path; a length and the
// time of modification, or a length of 0 and an error's text, and the text.
// Numbers are 64 bits, little-endian. A length of 0 asks for the Core dumps in a
// folder's tree, and is answered with a dumpList as JSON. A path in another root
// directory has its descriptor before it (see rooted).

type dumpList struct {
	Dumps []core.Dump
	Cut   bool // there may be more
}

const (
	listDumps = 0

	maxPath   = 4096
	maxSource = 16 << 20
)

func writeBlob(w io.Writer, head uint64, b []byte) error {
	var h [16]byte
	binary.LittleEndian.PutUint64(h[:], head)
	binary.LittleEndian.PutUint64(h[8:], uint64(len(b)))
	if _, err := w.Write(h[:]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

func readBlob(r io.Reader, limit uint64) (head uint64, b []byte, err error) {
	var h [16]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint64(h[8:])
	if n > limit {
		return 0, nil, fmt.Errorf("message of %d bytes is over the limit of %d", n, limit)
	}
	// Grown as bytes come: the length may be a lie.
	if b, err = io.ReadAll(io.LimitReader(r, int64(n))); err == nil && uint64(len(b)) < n {
		err = io.ErrUnexpectedEOF
	}
	return binary.LittleEndian.Uint64(h[:]), b, err
}

// rooted is a path in another root directory, as it is asked for: no path has a zero byte.
func rooted(root int, path string) string { return fmt.Sprintf("\x00%d\x00%s", root, path) }

// inRoot is the opposite of rooted; the root is nil for a plain path.
func inRoot(asked string, roots map[int]*os.File) (*os.File, string, error) {
	rest, ok := strings.CutPrefix(asked, "\x00")
	if !ok {
		return nil, asked, nil
	}
	number, path, ok := strings.Cut(rest, "\x00")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || roots[n] == nil {
		return nil, "", errors.New("asked for a source in no root directory of the job")
	}
	return roots[n], path, nil
}
