package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// What a log says of sparks is what the run-time system prints at its end.
func TestSparksAreCounted(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{{Threaded: true}, {Threaded: true, Release: "9.6.6"}, {Threaded: true, Release: "9.10.3"}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			exe := testprog.Build(t, "sparks", o)
			dir := t.TempDir()
			path, told := filepath.Join(dir, "log.eventlog"), filepath.Join(dir, "told")
			if _, err := Run(t.Context(), make(chan struct{}), Options{
				Program: []string{exe, "2000", "+RTS", "-N2", "-s" + told}, Events: []string{"gc"}, MaxFrames: 16, Output: path, Warn: func(line string) { t.Log(line) },
			}); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(told)
			if err != nil {
				t.Fatal(err)
			}
			var made uint64
			var want eventlog.Sparks
			line := regexp.MustCompile(`SPARKS: .*`).Find(text)
			if _, err := fmt.Sscanf(string(line), "SPARKS: %d (%d converted, %d overflowed, %d dud, %d GC'd, %d fizzled)", &made, &want.Converted, &want.Overflowed, &want.Dud, &want.Collected, &want.Fizzled); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			want.Created = made - want.Overflowed - want.Dud
			if want.Created == 0 || want.Dud == 0 || want.Overflowed == 0 {
				t.Errorf("the program made %+v", want)
			}
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var got eventlog.Sparks
			for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
				if e, is := r.Record().Event.(*eventlog.Sparks); is {
					got = *e
				}
			}
			if got != want {
				t.Errorf("the log has %+v; +RTS -s says %+v", got, want)
			}
		})
	}
}
