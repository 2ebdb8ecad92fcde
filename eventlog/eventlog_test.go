package eventlog

import (
	"bytes"
	"io"
	"testing"
)

// Events of no capability, which define what others refer to, are flushed before those of
// capabilities, in a new block where time goes back.
func TestDefinitionsPrecedeOtherBlocks(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, nil)
	for _, err := range []error{
		w.Write(5, 1, &RunThread{Thread: 7}),
		w.Write(6, NoCap, &Nodes{First: 1, Nodes: []Node{{0, FramePC, 1, 0x4000}, {1, FrameReturn, 1, 0x5000}}}),
		w.Write(7, NoCap, &Sample{Node: 2, Weight: 1000}),
		w.Write(3, NoCap, &Sample{Node: 2, Weight: 2000}),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []struct {
		id   uint16
		time uint64
		cap  int
	}{
		{IDBlockMarker, 6, NoCap}, {IDNodes, 6, NoCap}, {IDSample, 7, NoCap},
		{IDBlockMarker, 3, NoCap}, {IDSample, 3, NoCap},
		{IDBlockMarker, 5, 1}, {IDRunThread, 5, 1},
	}
	r := NewReader(&out)
	for i := 0; r.Next(); i++ {
		rec := r.Record()
		if i >= len(want) || rec.Event.EventID() != want[i].id || rec.Time != want[i].time || rec.Cap != want[i].cap {
			t.Fatalf("record %d: %d at %d ns of capability %d: %+v", i, rec.Event.EventID(), rec.Time, rec.Cap, rec.Event)
		}
	}
	if r.Err() != nil || !r.Complete() {
		t.Fatal(r.Err(), r.Complete())
	}
}

// A log that is still being written is read up to its last flush: the reader does not ask
// for bytes beyond it.
func TestFollow(t *testing.T) {
	in, out := io.Pipe()
	records := make(chan seen)
	go func() {
		r := NewReader(in)
		for r.Next() {
			rec := r.Record()
			records <- seen{id: rec.Event.EventID(), time: rec.Time}
		}
		close(records)
	}()
	w := NewWriter(out, nil)
	for i := range uint64(10) {
		ev := Event(&GCStart{})
		if i%2 == 1 {
			ev = &UserMsg{"odd"}
		}
		if err := w.Write(i, 0, ev); err != nil {
			t.Fatal(err)
		}
		flushed := make(chan error)
		go func() { flushed <- w.Flush() }()
		for _, want := range []seen{{id: IDBlockMarker, time: i}, {id: ev.EventID(), time: i}} {
			if got := <-records; got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
		if err := <-flushed; err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		w.Close()
		out.Close()
	}()
	if got, more := <-records; more {
		t.Errorf("after the end: %+v", got)
	}
}
