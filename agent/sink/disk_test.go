package sink

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
)

// slowLog is a log whose file cannot be created before it is let.
func slowLog(t *testing.T) (s *Sink, d *Disk, path string, let func()) {
	t.Helper()
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	d = NewDisk()
	path = filepath.Join(t.TempDir(), "log.eventlog")
	frozen := make(chan struct{})
	s = New(Config{Who: who, Warn: func(line string) { t.Log(line) }})
	if err := s.CreateBeside(d, func() (*invoker.Log, error) {
		<-frozen
		return invoker.CreateLog(path, who)
	}); err != nil {
		t.Fatal(err)
	}
	return s, d, path, func() { close(frozen) }
}

// lately has what waits have been handed over long ago.
func (b *beside) lately(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since = b.since.Add(-by)
}

// Nobody but the Disk waits for it. What does not fit is dropped, counted, and said in the log, which is whole otherwise.
func TestSlowDisk(t *testing.T) {
	s, d, path, let := slowLog(t)
	s.HoldAtMost(besideBuffer)
	if err := s.Emit(Now, &eventlog.EventDef{Index: 3, Requested: "alloc", Granted: "alloc", Unit: "bytes"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatalf("what was handed over a moment ago: %v", err)
	}
	if d.Open(path) {
		t.Error("a log is open that was not created")
	}
	s.beside.lately(2 * patience)
	if err := s.Flush(); !errors.Is(err, ErrSlow) {
		t.Errorf("the disk hangs: %v", err)
	}
	if err := s.Emit(Now, &eventlog.Warning{Text: "first"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); !errors.Is(err, ErrSlow) { // what follows stays here
		t.Errorf("the disk hangs yet: %v", err)
	}
	taken := uint64(0)
	for s.Unwritten() < 100 {
		if err := s.Emit(Now, &eventlog.Sample{Event: 3, Weight: 1}); err != nil {
			t.Fatal(err)
		}
		taken++
	}
	taken -= s.Unwritten()
	if held := s.Held(); held < besideBuffer || held > besideBuffer+1<<10 {
		t.Errorf("the log holds %d bytes", held)
	}
	let()
	s.Attend()
	if err := errors.Join(s.Repair(), s.Finish()); err != nil {
		t.Fatal(err)
	}
	if !d.Open(path) || s.Path() != path {
		t.Errorf("the log is %q", s.Path())
	}
	if lost, _ := s.Losses(); lost != 100 {
		t.Errorf("%d samples are lost", lost)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if d.Open(path) {
		t.Error("a closed log is open")
	}
	d.Close()

	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	samples, lost, texts := uint64(0), uint64(0), 0
	r := eventlog.NewReader(f)
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.Sample:
			samples++
		case *eventlog.Loss:
			if e.Event != 3 || e.Reason != eventlog.LossUnwritten {
				t.Errorf("%+v", e)
			}
			lost += e.Count
		case *eventlog.Warning:
			texts++
		}
	}
	if info, err := f.Stat(); r.Err() != nil || err != nil {
		t.Fatal(r.Err(), err)
	} else if _, ended := eventlog.Extent(f, info.Size()); !ended {
		t.Error("the log has no end")
	}
	if samples != taken || lost != 100 || texts != 2 {
		t.Errorf("%d samples of %d, %d lost of 100, %d warnings", samples, taken, lost, texts)
	}
	if d.held != 0 {
		t.Errorf("%d bytes wait when all is closed", d.held)
	}
}

// A log that cannot be created, or written, is tried again with each flush.
func TestDiskTriesAgain(t *testing.T) {
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDisk()
	defer d.Close()
	settled := func() {
		done := make(chan struct{})
		d.Do(func() { close(done) })
		<-done
	}
	path, tries := filepath.Join(t.TempDir(), "log.eventlog"), 0
	s := New(Config{Who: who, Warn: func(line string) { t.Log(line) }})
	if err := s.CreateBeside(d, func() (*invoker.Log, error) {
		if tries++; tries <= 2 {
			return nil, unix.ENOSPC
		}
		return invoker.CreateLog(path, who)
	}); err != nil {
		t.Fatal(err)
	}
	settled()
	for range 2 {
		if err := s.Flush(); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("the disk is full: %v", err)
		}
		settled()
	}
	if err := s.Flush(); err != nil {
		t.Errorf("there is room: %v", err)
	}
	settled()
	if info, err := os.Stat(path); err != nil || info.Size() == 0 || info.Size() != int64(s.Written()) {
		t.Errorf("%v, %v", info, err)
	}
	if err := s.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the log is there")
	}
}
