package eventlog

import (
	"bytes"
	"testing"
)

// A log declares all types of events, of which it has few: a reader makes no event for the others, since whoever reads many small
// logs pays for that in each.
func TestReaderMakesEventsOfTypesThatItReads(t *testing.T) {
	var log bytes.Buffer
	w := NewWriter(&log, nil)
	for range 3 {
		if err := w.Write(1, NoCap, &GCStart{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(bytes.NewReader(log.Bytes()))
	for r.Next() {
	}
	if r.Err() != nil || !r.Complete() {
		t.Fatal(r.Err(), r.Complete())
	}
	if len(r.in.buf) != firstBuffer {
		t.Errorf("a log of %d bytes took a buffer of %d", log.Len(), len(r.in.buf))
	}
	made := 0
	for i := range r.types.byID {
		if r.types.byID[i].event != nil {
			made++
		}
	}
	if len(r.Types()) < len(kinds)/2 || made == 0 || made > 2 { // it may have a block marker
		t.Errorf("%d events were made for %d types", made, len(r.Types()))
	}
	// One for the table, one for the types, a few for the reader itself and for types that are declared with extra bytes.
	if n := testing.AllocsPerRun(10, func() { NewReader(bytes.NewReader(log.Bytes())).Next() }); n > 20 {
		t.Errorf("to read the header of a log and its first event takes %v allocations", n)
	}
}
