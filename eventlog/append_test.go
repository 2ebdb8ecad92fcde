package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A log that was cut off anywhere can be added to, and is whole afterwards.
func TestAppend(t *testing.T) {
	full := mixedLog(t, 1)
	start := headerLen(t, full)
	file := filepath.Join(t.TempDir(), "log")
	for cut := start; cut <= len(full); cut += 13 {
		before, _, _, _ := readAll(full[:cut])
		if err := os.WriteFile(file, full[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		appendTo(t, file)
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		events, bad, complete, err := readAll(log)
		if len(bad) > 0 || !complete || err != nil {
			t.Fatalf("cut at %d: %v, complete %t, %v", cut, bad, complete, err)
		}
		isMarker := func(e seen) bool { return e.id == IDBlockMarker }
		before, events = slices.DeleteFunc(before, isMarker), slices.DeleteFunc(events, isMarker)
		n := len(before)
		if len(events) != n+2 || !slices.Equal(events[:n], before) || events[n].cap != 2 || events[n+1].cap != NoCap && events[n].cap != NoCap {
			t.Fatalf("cut at %d: %d events after %d: %+v", cut, len(events), n, events[n:])
		}
	}
}

func appendTo(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := Append(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		w.Write(6e9, 2, &RunThread{Thread: 1}), w.Flush(), w.Write(7e9, NoCap, &Loss{Count: 3}), w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An RTS's log takes what its header declares.
func TestAppendToRTSLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, rtsLogs(t)["9.0.2-l"], 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := Append(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	var refused *EventError
	if err := w.Write(6e9, NoCap, &Loss{Count: 3}); !errors.As(err, &refused) {
		t.Errorf("an undeclared event: %v", err)
	}
	if err := w.Write(6e9, NoCap, &UserMsg{"more"}); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	events, bad, complete, err := readAll(log)
	if n := len(events); len(bad) > 0 || !complete || err != nil || events[n-1].payload != "more" {
		t.Errorf("%d events, %v, %t, %v", n, bad, complete, err)
	}
}

func TestAppendToNoLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte("no log"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Append(f, nil); !errors.Is(err, ErrNotEventlog) {
		t.Error(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "no log" {
		t.Errorf("the file is now %q, %v", text, err)
	}
}
