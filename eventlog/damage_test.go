package eventlog

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
)

// seen is a record as a comparable value.
type seen struct {
	offset  int64
	length  int
	time    uint64
	cap     int
	id      uint16
	payload string
}

func (s seen) end() int { return int(s.offset) + s.length }

// readAll returns the events of a log, its malformed records, and the error.
func readAll(log []byte) (events []seen, bad []Malformed, complete bool, err error) {
	r := NewReader(bytes.NewReader(log))
	for r.Next() {
		rec := r.Record()
		if m, ok := rec.Event.(*Malformed); ok {
			bad = append(bad, *m)
			continue
		}
		events = append(events, seen{rec.Offset, int(r.Offset() - rec.Offset), rec.Time, rec.Cap, rec.Event.EventID(), string(rec.Payload)})
	}
	return events, bad, r.Complete(), r.Err()
}

// mixedLog is a log of ours of all events in several blocks.
func mixedLog(tb testing.TB, rounds int) []byte {
	tb.Helper()
	rng := rand.New(rand.NewPCG(11, 12))
	var log bytes.Buffer
	w := NewWriter(&log, &WriterOptions{Buffer: 2 << 10})
	for i := range rounds {
		for j, ev := range everyEvent() {
			generate(rng, ev)
			if err := w.Write(uint64(5e9)+uint64(1_000_000*i+1000*j), rng.IntN(3)-1, ev); err != nil {
				tb.Fatalf("%T: %v", ev, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return log.Bytes()
}

func damageInputs(tb testing.TB) map[string][]byte {
	logs := rtsLogs(tb)
	// Of the logs of one kind by several GHCs, take the oldest's.
	for _, kind := range []string{"l", "lau", "all", "hT", "nonmoving", "prof", "hr", "hb", "hm", "concurrent", "ipe", "hi", "ticky"} {
		found := false
		for _, version := range []string{"9.0.2", "9.6.6", "9.10.3"} {
			if _, ok := logs[version+"-"+kind]; ok && found {
				delete(logs, version+"-"+kind)
			} else {
				found = found || ok
			}
		}
		if !found {
			tb.Errorf("no log %s in testdata/rts", kind)
		}
	}
	logs["ours"] = mixedLog(tb, 2)
	return logs
}

func headerLen(tb testing.TB, log []byte) int {
	i := bytes.Index(log, []byte(magicDataBegin))
	if i < 0 {
		tb.Fatal("no data in the log")
	}
	return i + 4
}

// A log cut off at any byte gives all whole events before the cut, and one malformed record
// for the rest.
func TestTruncation(t *testing.T) {
	for name, log := range damageInputs(t) {
		t.Run(name, func(t *testing.T) {
			whole, bad, complete, err := readAll(log)
			if len(bad) > 0 || !complete || err != nil {
				t.Fatalf("the log itself: %v, complete %t, %v", bad, complete, err)
			}
			start := headerLen(t, log)
			n := 0
			step := 1
			if name != "ours" {
				step = 11
			}
			for cut := 0; cut < len(log); cut += step {
				events, bad, complete, err := readAll(log[:cut])
				if complete {
					t.Fatalf("cut at %d: complete", cut)
				}
				if cut < start {
					want := ErrHeaderCut
					if cut == 0 {
						want = ErrEmpty
					}
					var he *HeaderError
					if !errors.Is(err, want) || !errors.As(err, &he) || len(events)+len(bad) > 0 {
						t.Fatalf("cut at %d, inside the header: %v", cut, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				for n < len(whole) && whole[n].end() <= cut {
					n++
				}
				if !slices.Equal(events, whole[:n]) {
					t.Fatalf("cut at %d: %d events, want the first %d", cut, len(events), n)
				}
				end := start
				if n > 0 {
					end = whole[n-1].end()
				}
				// All that is left over is malformed.
				for _, m := range bad {
					if m.Offset != int64(end) {
						t.Fatalf("cut at %d, inside the event at %d: %v", cut, end, bad)
					}
					end += int(m.Length)
				}
				if end != cut {
					t.Fatalf("cut at %d: read up to %d", cut, end)
				}
			}
		})
	}
}

// survivors counts the events of a damaged log that the whole one has at the
// same place (moved by shift after the damage).
func survivors(whole, damaged []seen, at, shift int64) int {
	have := make(map[seen]bool, len(damaged))
	for _, e := range damaged {
		e.cap = 0 // follows from another event: the block's marker
		have[e] = true
	}
	n := 0
	for _, e := range whole {
		if e.offset >= at {
			e.offset += shift
		}
		e.cap = 0
		if have[e] {
			n++
		}
	}
	return n
}

// One damaged byte after the header loses the event that contains it and, if the reader must
// resynchronise, a few others.
func TestFlippedBytes(t *testing.T) {
	for name, log := range damageInputs(t) {
		t.Run(name, func(t *testing.T) {
			whole, _, _, _ := readAll(log)
			rng := rand.New(rand.NewPCG(13, 14))
			lost := map[int]int{} // number of events lost: how often
			start, wide := headerLen(t, log), 0
			for at := start; at < len(log)-2; at += max(3, (len(log)-start)/250) {
				damaged := bytes.Clone(log)
				damaged[at] ^= byte(1 + rng.IntN(255))
				events, bad, _, err := readAll(damaged)
				if err != nil {
					t.Fatalf("byte %d: %v", at, err)
				}
				for _, m := range bad {
					if m.Length < 0 || m.Offset < 0 || m.Offset+m.Length > int64(len(log)) || m.Reason == "" {
						t.Fatalf("byte %d: %+v", at, m)
					}
				}
				n := len(whole) - survivors(whole, events, int64(len(log)), 0)
				lost[n]++
				if n > 8 {
					wide++
				}
				if n > 40 || wide > 3 { // a byte can look like a block's marker
					t.Errorf("byte %d (%#x for %#x): %d of %d events lost: %v", at, damaged[at], log[at], n, len(whole), bad)
				}
			}
			t.Logf("number of events lost, and how often: %v", lost)
		})
	}
}

// Bytes inserted and bytes removed lose few events, and never the end marker.
func TestGarbageInTheMiddle(t *testing.T) {
	for name, log := range damageInputs(t) {
		t.Run(name, func(t *testing.T) {
			whole, _, _, _ := readAll(log)
			rng := rand.New(rand.NewPCG(15, 16))
			start := headerLen(t, log)
			// Garbage can look like events and mislead the reader until the next block; that
			// must be rare.
			const rounds, astray = 300, 3
			far, silent := 0, 0
			for range rounds {
				at := start + rng.IntN(len(log)-start-2)
				garbage := make([]byte, rng.IntN(5000))
				if rng.IntN(3) > 0 { // else zeros, as a crash leaves them
					for i := range garbage {
						garbage[i] = byte(rng.Uint32())
					}
				}
				damaged := slices.Concat(log[:at], garbage, log[at:])
				events, bad, complete, err := readAll(damaged)
				n := len(whole) - survivors(whole, events, int64(at), int64(len(garbage)))
				if n > 8 {
					far++
					t.Logf("%d bytes at %d: %d of %d events lost, %v", len(garbage), at, n, len(whole), bad)
				}
				if len(garbage) > 0 && len(bad) == 0 {
					silent++ // a few bytes can make an event out of two halves of one
				}
				if err != nil || far > astray || silent > astray {
					t.Errorf("%d bytes at %d: %d of %d events lost, %v, %v", len(garbage), at, n, len(whole), bad, err)
				}
				if !complete && at < len(log)-100 {
					t.Errorf("%d bytes at %d: the end marker is lost: %v", len(garbage), at, bad)
				}
			}
		})
	}
}

// Zeros after a log's events, as a crash of the machine leaves them, are one malformed record.
func TestZeroTail(t *testing.T) {
	log := mixedLog(t, 1)
	whole, _, _, _ := readAll(log)
	log = append(log[:len(log)-2], make([]byte, 600<<10)...)
	events, bad, complete, err := readAll(log)
	if len(events) != len(whole) || len(bad) != 1 || bad[0].Length != 600<<10 || complete || err != nil {
		t.Errorf("%d of %d events, complete %t, %v, %v", len(events), len(whole), complete, bad, err)
	}
}

// A damaged byte of the header leaves most of the log readable.
func TestDamagedHeader(t *testing.T) {
	log := mixedLog(t, 1)
	whole, _, _, _ := readAll(log)
	rng := rand.New(rand.NewPCG(17, 18))
	readable, clean := 0, 0
	start := headerLen(t, log)
	for at := range start {
		damaged := bytes.Clone(log)
		damaged[at] ^= byte(1 + rng.IntN(255))
		events, _, _, err := readAll(damaged)
		if err != nil {
			t.Errorf("byte %d: %v", at, err)
			continue
		}
		n := survivors(whole, events, int64(len(log)), 0)
		if n == len(whole) {
			clean++
		}
		if n >= len(whole)/2 {
			readable++
		} else {
			t.Errorf("byte %d (%#x for %#x): %d of %d events", at, damaged[at], log[at], n, len(whole))
		}
	}
	t.Logf("%d bytes: %d readable, %d without loss", start, readable, clean)
}

// What is no eventlog is refused with the reason: empty, cut inside its header, or another kind
// of file.
func TestNotAnEventlog(t *testing.T) {
	for _, c := range []struct {
		input string
		want  error
	}{
		{"", ErrEmpty},
		{"hd", ErrHeaderCut},
		{"hdrbhetb", ErrHeaderCut},
		{"\x7fELF\x02\x01\x01\x00\x00\x00", ErrNotEventlog},
		{"hdr", ErrHeaderCut},
		{"hello", ErrNotEventlog},
		{"hdrbhetb" + string(make([]byte, maxHeader+100)), ErrNotEventlog},
	} {
		_, _, _, err := readAll([]byte(c.input))
		var he *HeaderError
		if !errors.Is(err, c.want) || !errors.As(err, &he) {
			t.Errorf("%.20q: %v, want %v", c.input, err, c.want)
		}
	}
}

// An I/O error is returned after the events that could be read before it.
func TestReadError(t *testing.T) {
	log := mixedLog(t, 1)
	broken := errors.New("broken")
	for _, cut := range []int{0, 3, 2000, len(log) / 2, len(log)} {
		src := NewReader(&failing{data: log[:cut], err: broken})
		for src.Next() {
		}
		if !errors.Is(src.Err(), broken) {
			t.Errorf("failing at %d: %v", cut, src.Err())
		}
	}
}

type failing struct {
	data []byte
	err  error
}

func (f *failing) Read(p []byte) (int, error) {
	if len(f.data) == 0 {
		return 0, f.err
	}
	n := copy(p, f.data)
	f.data = f.data[n:]
	return n, nil
}

// The sizes of the reads in which a log arrives do not matter.
func TestSmallReads(t *testing.T) {
	log := mixedLog(t, 3)
	want, _, _, _ := readAll(log)
	r := NewReader(iotest.OneByteReader(bytes.NewReader(log)))
	n := 0
	for r.Next() {
		rec := r.Record()
		if got := (seen{rec.Offset, int(r.Offset() - rec.Offset), rec.Time, rec.Cap, rec.Event.EventID(), string(rec.Payload)}); got != want[n] {
			t.Fatalf("record %d: %v, want %v", n, got, want[n])
		}
		n++
	}
	if n != len(want) || r.Err() != nil || !r.Complete() {
		t.Errorf("%d of %d records, %v", n, len(want), r.Err())
	}
}

// A clock that jumps, forward by days too, is not taken for damage.
func TestClockJumps(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	var log bytes.Buffer
	w := NewWriter(&log, &WriterOptions{Buffer: 16 << 10})
	now := uint64(1e9)
	want := map[uint64]uint64{} // times by TSO
	for i := range uint64(60_000) {
		switch rng.IntN(50) {
		case 0:
			now += rng.Uint64N(300 * 24 * 3600 * 1e9)
		case 1:
			now -= rng.Uint64N(now)
		default:
			now += rng.Uint64N(1e7)
		}
		want[i] = now
		if err := w.Write(now, rng.IntN(3)-1, &Sample{TSO: i, Weight: rng.Uint64()}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(iotest.HalfReader(bytes.NewReader(log.Bytes())))
	for r.Next() {
		rec := r.Record()
		switch e := rec.Event.(type) {
		case *Malformed:
			t.Fatal(e)
		case *Sample:
			if want[e.TSO] != rec.Time {
				t.Fatalf("sample %d at %d, want %d", e.TSO, rec.Time, want[e.TSO])
			}
			delete(want, e.TSO)
		}
	}
	if len(want) > 0 || !r.Complete() || r.Err() != nil {
		t.Errorf("%d samples lost, %v", len(want), r.Err())
	}
}

// Events that a later version has made longer are read, and those of unknown types are
// skipped.
func TestLaterVersions(t *testing.T) {
	types := Types()
	for i := range types {
		switch types[i].ID {
		case IDRunThread:
			types[i].Size = 12
		case IDSample:
			types[i].Desc = "ccagent sample (v2)"
		}
	}
	types = append(types, EventType{ID: 2000, Size: VariableSize, Desc: "later"}, EventType{ID: 2001, Size: 3, Desc: "later, fixed"})
	var log bytes.Buffer
	w := NewWriter(&log, &WriterOptions{Types: types})
	rng := rand.New(rand.NewPCG(21, 22))
	n := 100_000
	for i := range n {
		var err error
		switch tail := make([]byte, rng.IntN(50)); i % 5 {
		case 0:
			err = w.WriteRaw(uint64(i), 1, IDRunThread, []byte{0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8})
		case 1:
			err = w.WriteRaw(uint64(i), NoCap, IDSample, tail)
		case 2:
			err = w.WriteRaw(uint64(i), NoCap, 2000, tail)
		case 3:
			err = w.WriteRaw(uint64(i), NoCap, 2001, []byte{1, 2, 3})
		case 4: // a capture's Loss with fields after its four
			err = w.WriteRaw(uint64(i), NoCap, IDLoss, append([]byte{1, 2, 3, 4}, tail...))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write(1, NoCap, &Sample{}); err == nil {
		t.Error("a sample was written under the declaration of another version")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(iotest.HalfReader(&log))
	got := map[string]int{}
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *Malformed:
			t.Fatal(e)
		case *RunThread:
			if e.Thread == 5 {
				got["run"]++
			}
		case *Unknown:
			got[e.Desc]++
		case *Loss:
			if *e == (Loss{1, 2, 3, 4}) {
				got["loss"]++
			}
		}
	}
	for _, name := range []string{"run", "later", "later, fixed", "ccagent sample (v2)", "loss"} {
		if got[name] != n/5 {
			t.Errorf("%s: %d of %d", name, got[name], n/5)
		}
	}
}

// Events of the largest size, sound and damaged, are read with a buffer of limited size.
func TestLargestEvents(t *testing.T) {
	var log bytes.Buffer
	w := NewWriter(&log, nil)
	write := func(i int, id uint16, payload []byte) {
		if err := w.WriteRaw(uint64(i), NoCap, id, payload); err != nil {
			t.Fatal(err)
		}
	}
	const n = 200
	payload := make([]byte, maxPayload)
	for i := range n {
		switch i % 4 {
		case 0:
			write(i, IDUserMsg, payload) // NULs
		case 1:
			write(i, IDCostCentre, payload) // bytes left over
		case 2:
			write(i, IDHeapSampleStack, append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 255}, payload[:100]...)) // cut short
		case 3:
			write(i, IDUserBinaryMsg, payload)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, in := range []io.Reader{bytes.NewReader(log.Bytes()), iotest.HalfReader(bytes.NewReader(log.Bytes()))} {
		got := map[uint16]int{}
		r := NewReader(in)
		for r.Next() {
			got[r.Record().Event.EventID()]++
		}
		if got[IDUserMsg] != n/4 || got[IDCostCentre] != n/4 || got[idEnd] != n/4 || got[IDUserBinaryMsg] != n/4 || !r.Complete() || r.Err() != nil {
			t.Errorf("%v, complete %t, %v", got, r.Complete(), r.Err())
		}
		if len(r.in.buf) > maxBuffer {
			t.Errorf("the buffer has grown to %d bytes", len(r.in.buf))
		}
	}
}
