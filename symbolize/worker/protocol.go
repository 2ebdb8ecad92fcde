package worker

import (
	"encoding/json"
	"time"

	"ccagent/internal/sandbox"
	"ccagent/symbolize"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/core"
	"ccagent/symbolize/sources"
)

// What a child does.
const (
	roleSymbolise   = "symbolise"
	roleUnwind      = "unwind"
	roleUnwindPages = "unwind pages"
	roleMiniDebug   = "minidebug"
)

// fileEvents is the first file of a symbolising child: where it writes its events, as an
// eventlog. Module files follow.
const fileEvents = 0

// request is a job without its files: numbers stand for those, from 1. It is the first
// message to the child, as JSON.
type request struct {
	Modules     []requestModule
	Kernel      []symbolize.KernelAddress
	EmbedSource bool
	SourceDirs  []string
	CoreDirs    []string
	Cache       bool // the parent keeps indices
	SymbolsOnly bool
	Stretches   bool
	After       symbolize.IDs
	Memory      uint64
	Timeout     time.Duration
}

type requestModule struct {
	ID        uint32
	Path      string
	File      int // number of a file; 0 is none
	Size      int64
	ModTime   time.Time
	Debug     int
	DebugSize int64
	Problem   string
	Addresses []symbolize.Address
	Info      *binary.Info `json:",omitempty"`
	Root      int          // identifies one of the programs' root directories
}

// Questions of a child, by the number that begins their message, each a question as JSON.
const (
	askSource = iota + 1 // answered with gave or failed
	askDumps             // answered with gave and a dumpList as JSON
	// The cache: answered with gave and then a descriptor, or with failed.
	askIndex
	askNewIndex
	askKeepIndex // answered with gave and no bytes, or with failed
	sendSummary  // not a question: the final symbolize.Summary as JSON
)

// What the parent answers. Of a source file the number is the time of modification in
// nanoseconds, at least gave.
const (
	failed = iota // with the error's text
	gave
)

type question struct {
	sources.Ref        // of askSource; of the others, Module
	Max         int64  // bytes of a source
	Tree        string // of askDumps: a folder
	Key         string // of an index
}

type dumpList struct {
	Dumps []core.Dump
	Cut   bool // there may be more
}

const (
	maxPath     = 4096
	maxQuestion = 8 * maxPath // JSON escapes
	maxSource   = 16 << 20
	maxSummary  = 1 << 20
	maxRequest  = 1 << 30
)

// answerMissing is the error's text for what is not there.
const answerMissing = "missing"

func send(c *sandbox.Conn, head uint64, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return c.Send(head, b)
}
