package eventlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An event that cannot be encoded is refused as a whole, and the log continues without it.
func TestWriteRefusesWhatDoesNotFit(t *testing.T) {
	long := strings.Repeat("x", maxPayload)
	for _, c := range []struct {
		ev   Event
		cap  int
		want error
	}{
		{&UserMsg{long + "x"}, NoCap, ErrTooLarge},
		{&UserMsg{long[1:] + "\xff"}, NoCap, ErrTooLarge}, // grows when it is mended
		{&ProgramEnv{1, []string{long}}, NoCap, ErrTooLarge},
		{&FileText{1, 0, []byte(long)}, NoCap, ErrTooLarge},
		{&Nodes{1, make([]Node, maxPayload/4)}, NoCap, ErrTooLarge},
		{&ProfSample{0, 1, make([]uint32, 256)}, NoCap, nil},
		{&NonmovingCensus{BlockSize: 3}, NoCap, nil},
		{&BlockMarker{}, NoCap, nil},
		{&Unknown{ID: 999}, NoCap, nil},
		{&Malformed{}, NoCap, nil},
		{&GCStart{}, -2, nil},
		{&GCStart{}, MaxCapabilities, nil},
		{&CreateThread{}, NoCap, nil},
		{&RunThread{}, 0, nil},
	} {
		var log bytes.Buffer
		w := NewWriter(&log, nil)
		var refused *EventError
		err := w.Write(2, c.cap, c.ev)
		if !errors.As(err, &refused) || refused.ID != c.ev.EventID() || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%T: %v", c.ev, err)
		}
		first := w.Write(1, NoCap, &UserMsg{long})
		second := w.Write(5, NoCap, c.ev)
		third := w.Write(1, NoCap, &UserMsg{"after"})
		if first != nil || second == nil && c.cap == NoCap || third != nil || w.Close() != nil {
			t.Errorf("%T: %v, %v, %v", c.ev, first, second, third)
		}
		events, bad, complete, err := readAll(log.Bytes())
		if n := len(events); len(bad) > 0 || !complete || err != nil || n < 3 || events[n-1].payload != "after" {
			t.Errorf("%T: %d events, %v, %v", c.ev, n, bad, err)
		}
	}
}

// FileText of the largest piece fits.
func TestLargestPiece(t *testing.T) {
	var log bytes.Buffer
	w := NewWriter(&log, nil)
	if err := w.Write(0, NoCap, &FileText{1 << 31, 1 << 63, make([]byte, MaxTextPart)}); err != nil {
		t.Error(err)
	}
}

// disk accepts a number of bytes, then no more.
type disk struct {
	*os.File
	room int
}

func (d *disk) Write(p []byte) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	n, err := d.File.Write(p[:n])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// When the disk becomes full at any byte, the file holds whole blocks, with all events up to
// the last successful flush, and the error stays.
func TestFullDisk(t *testing.T) {
	full := mixedLog(t, 1)
	whole, _, _, _ := readAll(full)
	for room := 0; room < len(full); room += 37 {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		w := NewWriter(&disk{f, room}, &WriterOptions{Buffer: 2 << 10})
		rng := rand.New(rand.NewPCG(11, 12))
		var failed error
		for j, ev := range everyEvent() {
			generate(rng, ev)
			if failed = w.Write(uint64(5e9)+uint64(1000*j), rng.IntN(3)-1, ev); failed != nil {
				break
			}
		}
		if failed == nil {
			failed = w.Close()
		}
		if !errors.Is(failed, syscall.ENOSPC) {
			t.Fatalf("room for %d bytes: %v", room, failed)
		}
		for _, err := range []error{w.Write(9, NoCap, &GCStart{}), w.WriteRaw(9, NoCap, IDGCStart, nil), w.Flush(), w.Close()} {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("room for %d bytes: afterwards %v", room, err)
			}
		}
		log, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(log)) != w.Size() || !bytes.HasPrefix(full, log) {
			t.Fatalf("room for %d bytes: %d bytes in the file, Size is %d", room, len(log), w.Size())
		}
		if len(log) > 0 {
			events, bad, complete, err := readAll(log)
			if len(bad) > 0 || complete || err != nil || len(events) > len(whole) {
				t.Fatalf("room for %d bytes: %v, %v", room, bad, err)
			}
		}
		f.Close()
	}
}

// A writer that may hold events back loses none when there is room again in time; when it holds too
// many, it drops all that follow and says so, and what it held can still be written.
func TestFullDiskForAWhile(t *testing.T) {
	for _, c := range []struct {
		name   string
		events int
		lost   bool
	}{{"short", 100, false}, {"long", 10_000, true}} {
		t.Run(c.name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "log"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d := &disk{f, 3000}
			w := NewWriter(d, &WriterOptions{Buffer: 1 << 10, Hold: 8 << 10})
			written := 0
			for i := range c.events {
				err := w.Write(uint64(i), NoCap, &UserMarker{Text: fmt.Sprint(i)})
				if err != nil && (!errors.Is(err, ErrNoRoom) || !errors.Is(err, syscall.ENOSPC)) {
					t.Fatal(err)
				}
				if err == nil {
					written++
				}
			}
			if !errors.Is(w.Stalled(), syscall.ENOSPC) || !errors.Is(w.Flush(), syscall.ENOSPC) {
				t.Fatalf("the writer is stalled by %v", w.Stalled())
			}
			d.room = 1 << 20
			err = w.Flush()
			if lost := errors.Is(err, ErrNoRoom); lost != c.lost || lost != (written < c.events) || !lost && (err != nil || w.Close() != nil) || w.Stalled() != nil {
				t.Fatalf("%d of %d events were written: %v; stalled by %v", written, c.events, err, w.Stalled())
			}
			log, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			events, bad, complete, err := readAll(log)
			n := 0
			for _, e := range events {
				if e.id == IDUserMarker && e.time == uint64(n) {
					n++
				}
			}
			if n != written || len(bad) > 0 || err != nil || complete == c.lost {
				t.Errorf("the log has %d events of %d: %v, %v, complete %v", n, written, bad, err, complete)
			}
		})
	}
}

// If the output cannot be truncated, the writer keeps its error; readers skip the block that
// was cut off.
func TestBrokenPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	wr := NewWriter(w, nil)
	if err := wr.Flush(); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}

// A process that is killed leaves a log that is valid up to its last flush.
func TestKilledWriter(t *testing.T) {
	if file := os.Getenv("EVENTLOG_TEST_KILLED"); file != "" {
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWriter(f, nil)
		for i := uint64(0); ; i++ {
			if err := w.Write(i, int(i%5)-1, &Sample{TSO: i}); err != nil {
				t.Fatal(err)
			}
			if i == 100_000 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				os.Stdout.WriteString("flushed\n")
			}
		}
	}
	file := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWriter$")
	cmd.Env = append(os.Environ(), "EVENTLOG_TEST_KILLED="+file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("flushed\n"))); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := NewReader(f)
	samples, bad := 0, 0
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *Sample:
			samples++
		case *Malformed:
			t.Log(e) // a write may be cut short by the kill
			bad++
		}
	}
	if samples < 100_000 || bad > 1 || r.Complete() || r.Err() != nil {
		t.Errorf("%d samples, %d malformed, complete %t, %v", samples, bad, r.Complete(), r.Err())
	}
}

// Copying a log by WriteRaw, ours or an RTS's, preserves every event.
func TestCopyByRawEvents(t *testing.T) {
	for name, log := range damageInputs(t) {
		t.Run(name, func(t *testing.T) {
			whole, _, _, _ := readAll(log)
			var out bytes.Buffer
			var w *Writer
			r := NewReader(bytes.NewReader(log))
			for r.Next() {
				if w == nil {
					w = NewWriter(&out, &WriterOptions{Types: r.Types()})
				}
				rec := r.Record()
				if rec.Event.EventID() == IDBlockMarker {
					continue
				}
				if err := w.WriteRaw(rec.Time, rec.Cap, rec.Event.EventID(), rec.Payload); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			count := func(events []seen) map[seen]int {
				m := map[seen]int{}
				for _, e := range events {
					if e.offset = 0; e.id != IDBlockMarker {
						m[e]++
					}
				}
				return m
			}
			again, bad, complete, err := readAll(out.Bytes())
			if len(bad) > 0 || !complete || err != nil {
				t.Fatal(bad, complete, err)
			}
			was, is := count(whole), count(again)
			for e, n := range was {
				if is[e] != n {
					t.Errorf("%d times %+v, had %d", is[e], e, n)
				}
			}
			if len(was) != len(is) {
				t.Errorf("%d kinds of events, had %d", len(is), len(was))
			}
		})
	}
}

// A raw event is refused if it is not declared, is the writer's own, or is not of its declared size.
func TestWriteRawChecksItsPayload(t *testing.T) {
	w := NewWriter(io.Discard, nil)
	for _, c := range []struct {
		id   uint16
		size int
	}{{IDGCStart, 1}, {IDRunThread, 3}, {IDSample, maxPayload + 1}, {999, 0}, {idEnd, 0}, {IDBlockMarker, 14}} {
		var refused *EventError
		if err := w.WriteRaw(0, NoCap, c.id, make([]byte, c.size)); !errors.As(err, &refused) {
			t.Errorf("event %d of %d bytes: %v", c.id, c.size, err)
		}
	}
}

// The bytes held back never exceed the buffer's size, whatever the number of capabilities.
func TestWriterIsBounded(t *testing.T) {
	const buffer = 64 << 10
	out := &largest{}
	w := NewWriter(out, &WriterOptions{Buffer: buffer})
	for i := range uint64(200_000) {
		if err := w.Write(i, int(i*7919%MaxCapabilities), &Sample{TSO: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, b := range w.blocks {
		held += cap(b.buf)
	}
	if out.n > buffer+maxPayload || held > 4*buffer || len(w.blocks) > MaxCapabilities/2 {
		t.Errorf("wrote %d bytes at once, keeps %d in %d buffers", out.n, held, len(w.blocks))
	}
}

// Whatever events are written, at whatever times and on whatever capabilities, the log reads
// back as those events without damage.
func TestWhatIsWrittenReadsBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	times := []uint64{0, 1, closeBack, 1e12, farGap, farGap + 1, 1 << 62, 1<<64 - 1}
	for round := range 300 {
		var log bytes.Buffer
		w := NewWriter(&log, nil)
		var time, written uint64
		for range rng.IntN(20) {
			if rng.IntN(3) == 0 {
				time = times[rng.IntN(len(times))]
			}
			time += magnitude(rng, 64) >> rng.IntN(64)
			events := everyEvent()
			ev := events[rng.IntN(len(events))]
			if rng.IntN(3) > 0 { // small events, which help a reader little
				ev = []Event{&CreateThread{}, &RunThread{}, &StopThread{}, &GCStart{}}[rng.IntN(4)]
			}
			if rng.IntN(4) > 0 {
				generate(rng, ev)
			}
			var refused *EventError
			switch err := w.Write(time, []int{NoCap, 0, 1, MaxCapabilities - 1}[rng.IntN(4)], ev); {
			case err == nil:
				written++
			case !errors.As(err, &refused):
				t.Fatal(err)
			}
			if rng.IntN(5) == 0 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		events, bad, complete, err := readAll(log.Bytes())
		var read uint64
		for _, e := range events {
			if e.id != IDBlockMarker {
				read++
			}
		}
		if len(bad) > 0 || !complete || err != nil || read != written {
			t.Fatalf("round %d: %d of %d events, complete %t: %v, %v", round, read, written, complete, bad, err)
		}
	}
}

type largest struct{ n int }

func (l *largest) Write(p []byte) (int, error) {
	l.n = max(l.n, len(p))
	return len(p), nil
}
