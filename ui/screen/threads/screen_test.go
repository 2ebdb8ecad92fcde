package threads

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
)

// log is of 100 ms on one capability: thread 7 runs in the first half, thread 8 for a quarter; then samples
// are lost; the end is no thread's.
func log(t testing.TB) *profile.Profile {
	t.Helper()
	l := logtest.New()
	node := l.Stack(l.Block(l.Binding("main", "M", "f", 0)))
	const ms = uint64(1e6)
	sample := func(at, tso uint64) { l.SampleOf(at, eventlog.Sample{Weight: ms / 2, Node: node, TSO: tso}) }
	for i := range uint64(100) {
		sample(i*ms/2, 7)
	}
	for i := range uint64(50) {
		sample(50*ms+i*ms/2, 8)
	}
	for i := range uint64(40) {
		l.Write(75*ms+i*ms/2, &eventlog.Loss{Count: 1, Reason: eventlog.LossRingFull})
	}
	for i := range uint64(10) {
		sample(95*ms+i*ms/2, 0)
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What became of sparks, and what was evaluated twice, stands above the threads.
func TestDrawNotes(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(logtest.Twice().End()))
	if err != nil {
		t.Fatal(err)
	}
	drawn := screentest.Open(t, Kind, p, nil).Draw(120, 30)
	for _, want := range []string{"sparks  1 000 sparks made, 60.0% converted", "duplicated  25.0% ~4.6 of the CPU time was evaluation that another thread had done, or did too (estimated)"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("nothing says %q:\n%s", want, drawn)
		}
	}
}

func open(t testing.TB) *screentest.Session { return screentest.Open(t, Kind, log(t), nil) }

func TestConforms(t *testing.T) {
	p := log(t)
	screentest.Conforms(t, Kind, func() *screentest.Session { return screentest.Open(t, Kind, p, nil) })
}

// Each thread has its share with an interval, and a track that is high where it ran; where samples were lost
// nobody knows.
func TestDraw(t *testing.T) {
	s := open(t)
	rows := map[string]string{}
	for l := range strings.Lines(s.Draw(120, 40)) {
		for _, name := range []string{" 7 ", " 8 ", "(no Haskell thread)", "cap0"} {
			if strings.Contains(l, name) && strings.HasPrefix(l, "|") && strings.Contains(l, "@") {
				rows[name] = strings.TrimRight(l, "|\n")
			}
		}
	}
	x := s.Screen.(*Screen)
	strip := x.time.Strip
	for name, want := range map[string][4]byte{" 7 ": {'@', '.', '~', '.'}, " 8 ": {'.', '@', '~', '.'}, "(no Haskell thread)": {'.', '.', '~', '@'}, "cap0": {'@', '@', '~', '@'}} {
		row := rows[name]
		if len(row) < strip.Max.X {
			t.Errorf("no track of %s in\n%s", name, s.Draw(120, 40))
			continue
		}
		for i, at := range []int{20, 60, 85, 97} {
			if got := strings.ReplaceAll(row, "*", "@")[strip.Min.X+at*strip.Dx()/100]; got != want[i] {
				t.Errorf("%s at %d ms is %q, want %q: %s", name, at, got, want[i], row)
			}
		}
	}
	if !strings.Contains(rows[" 7 "], "62.5%") || !strings.Contains(rows[" 7 "], "~") {
		t.Errorf("thread 7's share: %s", rows[" 7 "])
	}
}

// Enter keeps a thread's samples on all screens, on a second one those of either; the table still has
// all threads, and enter again takes one off.
func TestChoose(t *testing.T) {
	s := open(t)
	s.Draw(120, 40)
	s.Do(keymap.Top, keymap.Open)
	if ts := s.C.Applied.All(); len(ts) != 1 || ts[0] != (model.Transform{Op: model.OpThread, ID: 7}) {
		t.Fatalf("transforms %v", ts)
	}
	if k := s.C.Data.Summary.Kept; k != 100 {
		t.Errorf("%d samples are kept", k)
	}
	s.Do(keymap.Down, keymap.Open)
	if k, rows := s.C.Data.Summary.Kept, s.Screen.(*Screen).list.N; k != 150 || rows != 3 {
		t.Errorf("%d samples are kept, %d threads listed", k, rows)
	}
	s.Do(keymap.Open, keymap.Up, keymap.Open)
	if ts := s.C.Applied.All(); len(ts) != 0 {
		t.Errorf("transforms %v", ts)
	}
}

// Threads are sorted by what they used, by label, or by when they first ran.
func TestSort(t *testing.T) {
	s := open(t)
	s.Draw(120, 40)
	x := s.Screen.(*Screen)
	for x.order != byFirst {
		s.Do(keymap.Sort)
	}
	s.Do(keymap.Bottom)
	if x.cursor.TSO != 0 {
		t.Errorf("the last to run is %+v", x.cursor)
	}
	if pat, _ := screen.Compile("^8$", false); !s.Screen.Find(&pat, 1) || x.cursor.TSO != 8 {
		t.Errorf("found %+v", x.cursor)
	}
}

// Of a log of waits the table has for how long each thread waited; of others it has no such column.
func TestTableOfWaits(t *testing.T) {
	l := logtest.New()
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: "blocked", Granted: "blocked", Unit: "ns"})
	node := l.Stack(l.Block(l.Binding("main", "M", "f", 0)))
	for i := range uint64(100) {
		l.SampleOf(i*1e6, eventlog.Sample{Weight: 1e6, Node: node, TSO: 7})
		l.SampleOf(i*1e6, eventlog.Sample{Event: 1, Weight: 3e7, Node: node, TSO: 7 + i%2})
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	var text, doc bytes.Buffer
	if err := (Table{Profile: p}).Text(&text, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "1.50 s"); n != 2 || !strings.Contains(text.String(), "blocked   share") {
		t.Errorf("%d threads waited for 1.50 s, of two:\n%s", n, text.String())
	}
	if err := (Table{Profile: p}).JSON(&doc, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(doc.String(), `"blocked_ns": 1500000000`); n != 2 || !strings.Contains(doc.String(), `"blocked_event": "blocked"`) {
		t.Errorf("%d threads waited for 1.5 s, of two:\n%s", n, doc.String())
	}
	text.Reset()
	if err := (Table{Profile: log(t)}).Text(&text, printer.Options{}); err != nil || strings.Contains(text.String(), "blocked") {
		t.Errorf("without waits: %v\n%s", err, text.String())
	}
}
