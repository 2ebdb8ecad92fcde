package resymbolize

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
)

// A log that is being written is not replaced: what its writer still writes
// would be lost.
func TestSymbolizeLeavesALogThatIsBeingWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.eventlog")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := eventlog.Lock(f); err != nil {
		t.Fatal(err)
	}
	w := eventlog.NewWriter(f, nil)
	for _, ev := range []eventlog.Event{
		&eventlog.Module{ID: 1, Path: "/x"}, &eventlog.Nodes{First: 1, Nodes: []eventlog.Node{{Module: 1, Addr: 16}}}, &eventlog.Sample{Node: 1},
	} {
		if err := w.Write(1, eventlog.NoCap, ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), path, Options{}); !errors.Is(err, eventlog.ErrBeingWritten) {
		t.Errorf("symbolize: %v", err)
	}
	there, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mine, err := f.Stat(); err != nil || !os.SameFile(mine, there) {
		t.Error("the log was replaced under its writer")
	}
}
