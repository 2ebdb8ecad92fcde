package dump

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/internal/golden"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
	"ccagent/ui/screen"
)

// standstill is a dump of testdata/programs/standstill, run with 2 copies and queues of 4: two deadlocks of two
// threads each, and 8 threads that wait in two queues at the same place.
func standstill(t testing.TB) *profile.Profile {
	t.Helper()
	p, err := profile.Open(filepath.Join("testdata", "standstill.eventlog"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t testing.TB) (*screentest.Session, *Screen) {
	s := screentest.Open(t, Kind, standstill(t), nil)
	s.Draw(120, 40)
	return s, s.Screen.(*Screen)
}

func TestConforms(t *testing.T) {
	p := standstill(t)
	screentest.Conforms(t, Kind, func() *screentest.Session { return screentest.Open(t, Kind, p, nil) })
}

// Deadlocks are listed first, then groups of equal stacks, the largest first; each thread is in the list once,
// or in a group.
func TestRows(t *testing.T) {
	s, x := open(t)
	if k := x.rows[0].kind; k != rowDeadlock {
		t.Fatalf("the first row is %+v", x.rows[0])
	}
	screen := s.Draw(120, 40)
	for _, want := range []string{"DEADLOCK of 2 threads", "8 threads: ", "Main.standstill", "Main.hs:96", "black hole", "throwTo", "foreign call"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	if strings.Count(screen, "DEADLOCK") != 2 {
		t.Errorf("deadlocks of\n%s", screen)
	}
	listed := map[int]int{}
	for _, r := range x.rows {
		switch {
		case r.kind == rowGroup:
			for _, i := range x.dump().Groups[r.at].Threads {
				listed[i]++
			}
		case r.kind == rowThread && !r.member:
			listed[r.at]++
		}
	}
	for i := range x.dump().Threads {
		if listed[i] != 1 {
			t.Errorf("thread %d is listed %d times", x.dump().Threads[i].TSO, listed[i])
		}
	}
	for _, order := range []order{byID, byState, bySize} {
		s.Do(keymap.Sort)
		n := 0
		for _, r := range x.rows {
			if r.kind == rowThread && !r.member {
				n++
			}
		}
		if x.order != order || n != len(x.dump().Threads) {
			t.Errorf("by %s %d threads of %d", x.order, n, len(x.dump().Threads))
		}
	}
}

// Enter on a thread of a deadlock goes to the one that it waits for, and there back to the first; the stack
// beside it is that thread's.
func TestFollow(t *testing.T) {
	s, x := open(t)
	s.Do(keymap.Down)
	first := x.thread()
	waits := x.dump().Threads[first].For[0]
	s.Do(keymap.Open)
	if x.thread() != waits {
		t.Fatalf("at thread %d, want %d", x.thread(), waits)
	}
	stack := x.dump().Stack(&x.dump().Threads[waits])
	if !slices.Equal(x.shown, stack) || len(stack) == 0 {
		t.Errorf("shows %v, want %v", x.shown, stack)
	}
	if got := s.Draw(120, 40); !strings.Contains(got, "held by "+name(&x.dump().Threads[first])) || !strings.Contains(got, "1 thread waiting for it") {
		t.Errorf("who waits for whom is not said:\n%s", got)
	}
	s.Do(keymap.Open)
	if x.thread() != first {
		t.Errorf("at thread %d, want %d", x.thread(), first)
	}
}

// A group opens to its threads and closes again, from one of them too.
func TestGroups(t *testing.T) {
	s, x := open(t)
	group := slices.IndexFunc(x.rows, func(r row) bool { return r.kind == rowGroup })
	n, most := len(x.rows), len(x.dump().Groups[x.rows[group].at].Threads)
	x.list.Set(group)
	x.note()
	s.Do(keymap.Right)
	if len(x.rows) != n+most || most != 8 {
		t.Errorf("%d rows, %d before and %d in the group", len(x.rows), n, most)
	}
	s.Do(keymap.Down, keymap.Down, keymap.Left)
	if len(x.rows) != n || x.list.Cursor != group {
		t.Errorf("%d rows, cursor at %d, want %d and %d", len(x.rows), x.list.Cursor, n, group)
	}
}

// The filter keeps threads by state and by place, a search finds them.
func TestFind(t *testing.T) {
	s, x := open(t)
	s.C.Filter, _ = screen.Compile("black hole", true)
	s.Draw(120, 40)
	n := 0
	for _, th := range x.dump().Threads {
		if th.State == eventlog.StateBlackHole {
			n++
		}
	}
	got := 0
	for _, r := range x.rows {
		switch r.kind {
		case rowGroup:
			got += len(x.dump().Groups[r.at].Threads)
		case rowThread:
			got++
		}
	}
	if got != n || n == 0 {
		t.Errorf("%d threads of %d are listed", got, n)
	}
	s.C.Filter = screen.Pattern{}
	s.Draw(120, 40)
	if pat, _ := screen.Compile(`throwTo`, false); !s.Screen.Find(&pat, 1) || x.dump().Threads[x.thread()].State.String() != "throwTo" {
		t.Errorf("found thread %d", x.thread())
	}
}

// Without a dump there is no screen, and the reason says how to make one.
func TestOff(t *testing.T) {
	s := screentest.Open(t, Kind, profile.New(&columns.Log{}), nil)
	if why := Kind.Off(s.C); !strings.Contains(why, "ccagent threads -o") {
		t.Errorf("off for %q", why)
	}
}

// On a terminal of 80 columns the text has no line that the terminal would break.
func TestTextFitsTheTerminal(t *testing.T) {
	var text strings.Builder
	if err := (Report{Profile: standstill(t)}).Text(&text, printer.Options{File: "standstill.eventlog", Width: 80}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(text.String(), "\n") {
		if w := safe.Width(line); w > 80 {
			t.Errorf("%d columns: %q", w, line)
		}
	}
	golden.Check(t, "standstill-80.txt", text.String())
}
