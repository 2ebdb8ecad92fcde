package eventlog

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// For any bytes: every byte is either in an event or in a malformed record, in order; the
// records do not depend on the sizes of reads; and every event is the same after being
// written and read again.
func FuzzReader(f *testing.F) {
	for _, log := range rtsLogs(f) {
		f.Add(small(f, log))
	}
	f.Add(small(f, mixedLog(f, 1)))
	f.Add(appendHeader(nil, []EventType{{ID: 18, Size: 14}, {ID: 1, Size: 4}, {ID: IDSample, Size: VariableSize, Desc: "ccagent sample (v1)"}}))
	f.Fuzz(func(t *testing.T, log []byte) {
		r, slow := NewReader(bytes.NewReader(log)), NewReader(iotest.HalfReader(bytes.NewReader(log)))
		declared := map[uint16]uint16{}
		at := int64(-1)
		for r.Next() {
			rec := r.Record()
			if at < 0 {
				at = r.judge.begin
				for _, et := range r.Types() {
					declared[et.ID] = et.Size
				}
			}
			if !slow.Next() || slow.Record().Offset != rec.Offset || slow.Record().Event.EventID() != rec.Event.EventID() {
				t.Fatalf("offset %d: read by pieces, the log differs", rec.Offset)
			}
			if m, ok := rec.Event.(*Malformed); ok {
				if m.Length > 0 && m.Offset >= r.judge.begin && m.Offset != at || m.Length < 0 || m.Reason == "" {
					t.Fatalf("read up to %d, then %+v", at, m)
				}
				at = max(at, m.Offset+m.Length)
				continue
			}
			if rec.Offset != at || rec.Cap < NoCap || rec.Cap > NoCapability {
				t.Fatalf("read up to %d, then %+v", at, rec)
			}
			at = r.Offset()
			again(t, rec, declared)
		}
		sameFast(t, log)
		var he *HeaderError
		switch {
		case errors.As(r.Err(), &he):
			if slow.Next() || !errors.As(slow.Err(), &he) {
				t.Fatal("read by pieces, it is an eventlog")
			}
		case r.Err() != nil:
			t.Fatal(r.Err())
		case at >= 0 && r.Complete() && at != int64(len(log)-2), at >= 0 && !r.Complete() && at != int64(len(log)):
			t.Fatalf("read up to %d of %d, complete %t", at, len(log), r.Complete())
		}
	})
}

// sameFast compares NextSamples (with Next for the rest) with Next.
func sameFast(t *testing.T, log []byte) {
	t.Helper()
	plain, fast := NewReader(bytes.NewReader(log)), NewReader(bytes.NewReader(log))
	var batch [7]PackedSample
	var origins Origins
	var named [MaxOrigins]Origin
	for {
		for i, s := range batch[:fast.NextSamples(batch[:], &origins)] {
			for len(origins.New) > 0 && origins.New[0].At <= i {
				named[origins.New[0].Number] = origins.New[0].Origin
				origins.New = origins.New[1:]
			}
			if !plain.Next() {
				t.Fatalf("the log has ended, the fast way has %+v", s)
			}
			if got, ok := plain.Record().Event.(*Sample); !ok || *got != s.Sample(&named[s.Origin]) || plain.Record().Time != s.Time {
				t.Fatalf("%s, the fast way has %+v", shownRecord(plain), s)
			}
		}
		more := plain.Next()
		if fast.Next() != more {
			t.Fatalf("more of the log: %t", more)
		}
		if !more {
			break
		}
		if got, want := shownRecord(fast), shownRecord(plain); got != want {
			t.Fatalf("%s, the fast way has %s", want, got)
		}
	}
	if plain.Complete() != fast.Complete() || plain.Offset() != fast.Offset() {
		t.Fatalf("ends at %d, the fast way at %d", plain.Offset(), fast.Offset())
	}
}

// small cuts a log down for the fuzzer: the first events, and of the header
// what declares them.
func small(tb testing.TB, log []byte) []byte {
	start := headerLen(tb, log)
	r := NewReader(bytes.NewReader(log))
	used := map[uint16]bool{}
	end := start
	for r.Next() && end < start+500 {
		used[r.Record().Event.EventID()] = true
		end = int(r.Offset())
	}
	types := slices.DeleteFunc(slices.Clone(r.Types()), func(et EventType) bool { return !used[et.ID] })
	for i := range types {
		if types[i].ID < IDCapture {
			types[i].Desc = ""
		}
	}
	return append(appendHeader(nil, types), log[start:end]...)
}

// again encodes an event and decodes that.
func again(t *testing.T, rec *Record, declared map[uint16]uint16) {
	id := rec.Event.EventID()
	size, ok := declared[id]
	k := kindOf[id]
	if _, unknown := rec.Event.(*Unknown); unknown || !ok || k == nil {
		return
	}
	c := codec{encoding: true, size: size}
	rec.Event.layout(&c)
	if c.failed != "" {
		t.Fatalf("offset %d: encode %+v: %s", rec.Offset, rec.Event, c.failed)
	}
	ev := k.make()
	var d codec
	d.decode(c.buf, size, k.own || size != VariableSize)
	ev.layout(&d)
	if diff := cmp.Diff(rec.Event, ev, cmpopts.EquateEmpty()); d.failed != "" || diff != "" {
		t.Fatalf("offset %d: %s\n%s", rec.Offset, d.failed, diff)
	}
}
