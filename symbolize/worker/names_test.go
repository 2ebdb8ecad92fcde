package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/sandbox"
	"ccagent/symbolize"
	"ccagent/symbolize/sources"

	"github.com/klauspost/compress/zstd"
)

// frameBomb is a file of many small zstd frames that unpack to 64 MB each.
func frameBomb(t *testing.T) *os.File {
	t.Helper()
	var frame bytes.Buffer
	w, err := zstd.NewWriter(&frame, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range maxFrame / len(zeros) {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The last byte is no frame's: no decoder reads on into the next one.
	bomb := bytes.Repeat(append(frame.Bytes(), 1), 16<<20/frame.Len())
	path := filepath.Join(t.TempDir(), "bomb")
	if err := os.WriteFile(path, bomb, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A module's file that takes hours to look through holds the parent no longer than the
// child may live.
func TestNamesEndWithTheChild(t *testing.T) {
	symboliserRole = "asks once"
	defer func() { symboliserRole = roleSymbolise }()
	ended := make(chan struct{})
	job := Job{Modules: []ModuleFile{{ID: 7, File: frameBomb(t), Addresses: []symbolize.Address{{Addr: 1}}}}, Timeout: time.Second}
	go func() {
		defer close(ended)
		_, _ = Run(context.Background(), job, func(eventlog.Event) error { return nil })
	}()
	select {
	case <-ended:
	case <-time.After(time.Minute): // it would be some ten minutes
		t.Fatal("the parent still looks through a file for a child that is dead")
	}
}

// askOnce asks for a source and waits for the answer.
func askOnce(c *sandbox.Conn, _ []*os.File) error {
	if _, _, err := c.Receive(maxRequest); err != nil {
		return err
	}
	if err := send(c, askSource, question{Ref: sources.Ref{Module: 7, Dir: "/", Name: "x.hs"}}); err != nil {
		return err
	}
	_, _, err := c.Receive(maxSource)
	if err == nil {
		_, _, err = c.Receive(1)
	}
	return err
}

func namesOf(t *testing.T, text string, total *int) *names {
	t.Helper()
	n := &names{all: map[string]bool{}, room: maxNames, total: total, asked: maxAsked, ctx: t.Context()}
	n.scan(strings.NewReader(text), int64(len(text)))
	return n
}

// A child that asks for ever more names does not make its parent remember them all.
func TestAskedNamesAreBounded(t *testing.T) {
	total := maxTotal
	n := namesOf(t, "\x00src/Main.hs\x00", &total)
	long := strings.Repeat("/a", maxPath/2-8)
	for i := range 200 {
		n.file(fmt.Sprintf("%s%08d", long, i))
	}
	held := 0
	for s := range n.all {
		held += len(s)
	}
	if held > maxAsked+64 {
		t.Errorf("%d bytes of what a child asked for are held", held)
	}
	if n.file("/other.hs") || !n.file("src/Main.hs") || !n.file("Main.hs") {
		t.Error("what is named is not found any more, or what is not named is")
	}
}

// Names of all modules together are bounded: a program maps as many as it likes.
func TestNamesOfAllModulesAreBounded(t *testing.T) {
	total := 64
	var got int
	for i := range 8 {
		n := namesOf(t, fmt.Sprintf("\x00/some/where/%d.hs\x00/some/where/else/%d.hs\x00", i, i), &total)
		got += len(n.text) - len(n.all)
	}
	if got == 0 || got > 64 {
		t.Errorf("%d bytes of names are held, where 64 are allowed", got)
	}
}

// A search whose time is over finds nothing more, and unpacks nothing.
func TestNamesStopWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	total := maxTotal
	n := &names{all: map[string]bool{}, room: maxNames, total: &total, asked: maxAsked, ctx: ctx}
	reads := 0
	n.scan(readerAt(func(b []byte, at int64) (int, error) { reads++; return 0, io.EOF }), 1<<30)
	if reads != 0 || n.has("x") {
		t.Errorf("%d reads after the end of the time", reads)
	}
}

type readerAt func(b []byte, at int64) (int, error)

func (f readerAt) ReadAt(b []byte, at int64) (int, error) { return f(b, at) }
