package eventlog

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// appendEvent encodes an event as it stands in a log, strings verbatim, under
// the declaration that the log's header has for it.
func appendEvent(t *testing.T, b []byte, time uint64, ev Event, size uint16) []byte {
	t.Helper()
	var w Writer
	c := &w.c
	c.encoding, c.size = true, size
	c.buf = appendEventHead(b, ev.EventID(), time, size)
	head := len(c.buf)
	ev.layout(c)
	if err := w.fit(head, size); err != nil {
		t.Fatalf("encode %T: %v", ev, err)
	}
	return c.buf
}

func sizes(types []EventType) map[uint16]uint16 {
	m := map[uint16]uint16{}
	for _, et := range types {
		m[et.ID] = et.Size
	}
	return m
}

// reencode decodes a whole log and encodes it again, block markers and all.
func reencode(t *testing.T, log []byte) []byte {
	t.Helper()
	r := NewReader(bytes.NewReader(log))
	var out []byte
	var declared map[uint16]uint16
	for r.Next() {
		if out == nil {
			out = appendHeader(nil, r.Types())
			declared = sizes(r.Types())
		}
		rec := r.Record()
		if m, ok := rec.Event.(*Malformed); ok {
			t.Errorf("%v", m)
			continue
		}
		out = appendEvent(t, out, rec.Time, rec.Event, declared[rec.Event.EventID()])
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	if r.Complete() {
		out = binary.BigEndian.AppendUint16(out, idEnd)
	}
	return out
}

// rtsLogs gives the logs in testdata that GHC's RTS wrote.
func rtsLogs(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/rts/*.eventlog")
	if err != nil || len(names) == 0 {
		t.Fatalf("no logs in testdata/rts: %v", err)
	}
	logs := map[string][]byte{}
	for _, name := range names {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		logs[strings.TrimSuffix(filepath.Base(name), ".eventlog")] = log
	}
	return logs
}

// countedRight corrects the lengths that an RTS has miscounted, as writing does.
func countedRight(log []byte) []byte {
	log = bytes.Clone(log)
	for r := NewReader(bytes.NewReader(bytes.Clone(log))); r.Next(); {
		if rec := r.Record(); rec.Event.EventID() == IDInfoTable {
			binary.BigEndian.PutUint16(log[rec.Offset+10:], uint16(len(rec.Payload)))
		}
	}
	return log
}

// Every log of a run-time system, decoded and encoded again, has the same bytes.
func TestRTSLogsReencodeToTheSameBytes(t *testing.T) {
	for name, log := range rtsLogs(t) {
		t.Run(name, func(t *testing.T) {
			log := countedRight(log)
			if again := reencode(t, log); !bytes.Equal(again, log) {
				t.Errorf("%d bytes, differs from the original's %d at %d", len(again), len(log), firstDifference(again, log))
			}
		})
	}
}

func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}
