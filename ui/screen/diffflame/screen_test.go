package diffflame

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/screen"
)

// compared is two builds of a program; see logtest.Run.
func compared(t testing.TB) *screen.Compared {
	t.Helper()
	c := &screen.Compared{NamesA: []string{"a.eventlog"}, NamesB: []string{"x.eventlog"}, Shown: screen.SideB}
	for i, to := range []*[]*profile.Profile{&c.A, &c.B} {
		p, err := profile.Load(bytes.NewReader(logtest.Run(uint64(100*i), i == 1).End()))
		if err != nil {
			t.Fatal(err)
		}
		*to = append(*to, p)
	}
	return c
}

func open(t testing.TB, c *screen.Compared) *screentest.Session {
	return screentest.Open(t, Kind, c.B[0], c)
}

func TestConforms(t *testing.T) {
	c := compared(t)
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t, c) })
}

// What B alone has is new, and is drawn by B's widths. By A's it is not drawn, and marked where it
// would be.
func TestNewAndGone(t *testing.T) {
	s := open(t, compared(t))
	got := s.Draw(120, 40)
	for _, want := range []string{"widths by B", "New.added", "  new", "less in B", "more in B", "within noise"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	block := func() bool { // New.added as a block: with its change after a border
		return strings.Contains(s.Draw(120, 40), "|+15")
	}
	if !block() {
		t.Errorf("New.added is no block by B's widths:\n%s", s.Draw(120, 40))
	}
	s.Do(keymap.Mode)
	if block() {
		t.Errorf("New.added is a block by A's widths:\n%s", s.Draw(120, 40))
	}
	if got := s.Draw(120, 40); !strings.Contains(got, "+ at a block's end: new below it") {
		t.Errorf("nothing says that something is new:\n%s", got)
	}
	s.Do(keymap.Mode)
	if !block() {
		t.Errorf("New.added is no block by the widths of both:\n%s", s.Draw(120, 40))
	}
}

// Arrows go along blocks that are there, enter widens the block and esc takes that back.
func TestKeys(t *testing.T) {
	s := open(t, compared(t))
	s.Answer()
	screenOf := s.Screen.(*Screen)
	s.Do(keymap.Down, keymap.Right, keymap.Left)
	if screenOf.at == 0 || screenOf.pair.Nodes[screenOf.at].Parent != 0 {
		t.Errorf("at node %d", screenOf.at)
	}
	at := screenOf.at
	s.Do(keymap.Open)
	if screenOf.zoom != screenOf.paths[at] || !s.Screen.Back() || screenOf.zoom != 0 || s.Screen.Back() {
		t.Error("enter and esc do not zoom")
	}
	s.Do(keymap.NextPane, keymap.NonZero, keymap.Bottom)
	if screenOf.list.N < 3 || screenOf.at != screenOf.rows[screenOf.list.N-1] {
		t.Errorf("the list's end is row %d of %d, node %d", screenOf.list.Cursor, screenOf.list.N, screenOf.at)
	}
	if pat, _ := screen.Compile("added", false); !s.Screen.Find(&pat, 1) || s.Screen.Subject().Only != "B" {
		t.Errorf("found %+v", s.Screen.Subject())
	}
}

// Logs of different units are not compared, and say so.
func TestUnits(t *testing.T) {
	c := compared(t)
	p, err := profile.Load(bytes.NewReader(bytes.ReplaceAll(logtest.Run(1, false).End(), []byte("ns"), []byte("us"))))
	if err != nil {
		t.Fatal(err)
	}
	c.A[0] = p
	if got := open(t, c).Draw(120, 40); !strings.Contains(got, "cannot be compared") {
		t.Errorf("logs of two units are compared:\n%s", got)
	}
}
