package columns

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/profile/logtest"
)

// growing is a log that is being written, as ccagent writes one.
type growing struct {
	t    *testing.T
	path string
	file *os.File
}

func newGrowing(t *testing.T, name string) *growing {
	t.Helper()
	g := &growing{t: t, path: filepath.Join(t.TempDir(), name)}
	var err error
	if g.file, err = os.Create(g.path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.file.Close() })
	if err := eventlog.Lock(g.file); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *growing) write(b []byte) {
	g.t.Helper()
	if _, err := g.file.Write(b); err != nil {
		g.t.Fatal(err)
	}
}

func (g *growing) follow() *Follower {
	g.t.Helper()
	f, err := Follow(g.path)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { f.Close() })
	return f
}

func poll(t *testing.T, f *Follower, want FollowState) {
	t.Helper()
	if _, err := f.Poll(); err != nil || f.State() != want {
		t.Fatalf("state %q, error %v, want %q", f.State(), err, want)
	}
}

// settled is a Log without what may differ between one of a part of a log
// and one of a log that was cut there.
func settled(p *Log) *Log {
	a := &p.Accounting
	a.Bytes, a.Growing, a.Malformed, a.Passed, a.Damage = 0, false, 0, 0, nil
	return p
}

// The Log of a growing log is that of what is there, and stays that when more
// comes; in the end it is that of the whole log.
func TestFollow(t *testing.T) {
	log := logtest.NBody().End()
	g := newGrowing(t, "p.eventlog")
	f := g.follow()
	poll(t, f, FollowGrowing)
	type part struct {
		p *Log
		n int
	}
	var parts []part
	for n := 0; n < len(log); {
		m := min(len(log), n+97)
		g.write(log[n:m])
		n = m
		if _, err := f.Poll(); err != nil {
			t.Fatal(err)
		}
		if n > bytes.Index(log, []byte("datb"))+4 {
			parts = append(parts, part{f.Log(), n})
		}
	}
	if f.State() != FollowEnded {
		t.Errorf("in the end, %q", f.State())
	}
	whole, err := Open(g.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p := f.Log(); !reflect.DeepEqual(p, whole) {
		t.Errorf("followed to its end, the log differs from itself read at once in %s", differs(p, whole))
	}
	for _, x := range parts {
		cut := loaded(t, log[:x.n])
		if !reflect.DeepEqual(settled(x.p), settled(cut)) {
			t.Fatalf("after %d bytes, the growing log differs from one cut there in %s", x.n, differs(x.p, cut))
		}
	}
}

// No field of a Log is forgotten when it is copied, but those that finish makes anew.
func TestSoFarCopiesEveryField(t *testing.T) {
	var p Log
	made := []string{"Contexts", "Sites", "SkippedWords", "FoldedFrames", "Nodes", "Places", "Locations"}
	v := reflect.ValueOf(&p).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !f.CanSet(), slices.Contains(made, v.Type().Field(i).Name):
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.Kind() == reflect.Uint64:
			f.SetUint(1)
		case f.Kind() == reflect.Struct:
			for j := range f.NumField() {
				if x := f.Field(j); x.Kind() == reflect.Slice && x.CanSet() {
					x.Set(reflect.MakeSlice(x.Type(), 1, 1))
				} else if k := x.Kind(); k >= reflect.Uint && k <= reflect.Uint64 {
					f.Field(j).SetUint(1)
				} else if k == reflect.Int {
					f.Field(j).SetInt(1)
				}
			}
		default:
			t.Errorf("%s: a %s", v.Type().Field(i).Name, f.Kind())
		}
	}
	got := reflect.ValueOf(p.soFar()).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if v.Field(i).CanSet() && !slices.Contains(made, name) && got.Field(i).IsZero() {
			t.Errorf("%s is not copied", name)
		}
	}
}

// differs names the fields in which two Logs differ.
func differs(a, b *Log) string {
	var names []string
	va, vb := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range va.NumField() {
		if x, y := fmt.Sprintf("%+v", va.Field(i)), fmt.Sprintf("%+v", vb.Field(i)); x != y {
			names = append(names, va.Type().Field(i).Name)
		}
	}
	return strings.Join(names, ", ")
}

// A Follower recognises each way in which a growing log can end, keeps what it has read,
// and reports nothing new afterwards.
func TestFollowTellsWhatBecomesOfTheLog(t *testing.T) {
	log := logtest.NBody().End()
	half := log[:len(log)-2000]
	for _, c := range []struct {
		name string
		then func(g *growing)
		want FollowState
	}{
		{"writer killed", func(g *growing) { g.file.Close() }, FollowAbandoned},
		{"truncated", func(g *growing) { check(g.t, g.file.Truncate(100)) }, FollowTruncated},
		{"replaced", func(g *growing) {
			g.file.Close()
			check(g.t, os.WriteFile(g.path+"~", log, 0o600))
			check(g.t, os.Rename(g.path+"~", g.path))
		}, FollowReplaced},
		{"removed", func(g *growing) { g.file.Close(); check(g.t, os.Remove(g.path)) }, FollowRemoved},
		{"removed but written on", func(g *growing) { check(g.t, os.Remove(g.path)) }, FollowGrowing},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS != "linux" {
				testprog.Skip(t, &testprog.UnsupportedError{Need: "locks that show a log's writer", Hint: "Linux"})
			}
			g := newGrowing(t, "p.eventlog")
			f := g.follow()
			g.write(half)
			poll(t, f, FollowGrowing)
			n := f.Log().Samples()
			c.then(g)
			poll(t, f, c.want)
			if p := f.Log(); p.Samples() < n || n == 0 || p.Accounting.Growing != (c.want == FollowGrowing) {
				t.Errorf("%d samples after %d", p.Samples(), n)
			}
			if changed, err := f.Poll(); changed || err != nil {
				t.Errorf("once more: %v, %v", changed, err)
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// After a rotated log, Next is the next piece's path, also if the capture's own name ends
// in a number.
func TestFollowRotatedCapture(t *testing.T) {
	g := newGrowing(t, "p.7.eventlog")
	l := logtest.New()
	l.Write(1, &eventlog.CaptureEnd{Reason: eventlog.EndRotated})
	g.write(l.EndAbruptly(false))
	f := g.follow()
	poll(t, f, FollowRotated)
	if got, want := f.Next(), filepath.Join(filepath.Dir(g.path), "p.7.2.eventlog"); got != want {
		t.Errorf("next log %s, want %s", got, want)
	}
	next := filepath.Join(filepath.Dir(g.path), "p.8.eventlog")
	check(t, os.WriteFile(next, nil, 0o600))
	if f.Next() != next {
		t.Errorf("next log %s, want %s", f.Next(), next)
	}
}

// Following a file that cannot become a log ends with a HeaderError; a directory and a
// missing file cannot be followed.
func TestFollowWhatIsNoLog(t *testing.T) {
	g := newGrowing(t, "x")
	f := g.follow()
	poll(t, f, FollowGrowing)
	g.write([]byte("hd"))
	poll(t, f, FollowGrowing) // may become one
	g.write([]byte("not a log"))
	var he *eventlog.HeaderError
	if _, err := f.Poll(); !errors.As(err, &he) {
		t.Errorf("error %v", err)
	}
	if _, err := Follow(t.TempDir()); err == nil {
		t.Error("a directory can be followed")
	}
	if _, err := Follow(g.path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// A log that is still being written is distinguished from one that was cut off.
func TestOpenWhileWritten(t *testing.T) {
	g := newGrowing(t, "p.eventlog")
	log := logtest.NBody().End()
	g.write(log[:len(log)*3/4]) // the header is longer than half
	p, err := Open(g.path, nil)
	if err != nil || p.Accounting.Growing != (runtime.GOOS == "linux") {
		t.Errorf("growing %t, %v", p.Accounting.Growing, err)
	}
	g.file.Close()
	if p, err = Open(g.path, nil); err != nil || p.Accounting.Growing {
		t.Errorf("abandoned, it grows (%v)", err)
	}
}

// Reading by runs of samples and event by event give the same Log, of sound
// logs and of damaged ones.
func TestWaysOfReadingAgree(t *testing.T) {
	var generated bytes.Buffer
	check(t, logtest.Generate(&generated, 5000, 300, 5))
	logs := map[string][]byte{"nbody": logtest.NBody().End(), "generated": generated.Bytes()}
	for _, name := range []string{"9.0.2-all", "9.0.2-prof", "9.10.3-hi"} {
		log, err := os.ReadFile("../../eventlog/testdata/rts/" + name + ".eventlog")
		check(t, err)
		logs[name] = log
	}
	rng := rand.New(rand.NewPCG(31, 32))
	for name, log := range logs {
		header := bytes.Index(log, []byte("datb")) + 4
		for round := range 12 {
			log := bytes.Clone(log)
			for range round {
				log[header+rng.IntN(len(log)-header)] ^= byte(1 + rng.IntN(255))
			}
			read := func(take func(b *builder, rd *eventlog.Reader)) *Log {
				b, rd := newBuilder(), eventlog.NewReader(bytes.NewReader(log))
				take(b, rd)
				check(t, rd.Err())
				return b.finish()
			}
			want := read(func(b *builder, rd *eventlog.Reader) {
				for rd.Next() {
					b.add(rd.Record())
				}
			})
			if got := read(func(b *builder, rd *eventlog.Reader) { b.take(rd) }); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s with %d bytes changed, read in runs: differs in %s", name, round, differs(got, want))
			}
		}
	}
}

// Following an RTS's log gives what reading it at once gives.
func TestFollowRTSLogs(t *testing.T) {
	logs, err := filepath.Glob("../../eventlog/testdata/rts/*.eventlog")
	if err != nil || len(logs) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, path := range logs {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		g := newGrowing(t, "p.eventlog")
		f := g.follow()
		for n := 0; n < len(log); n += 4096 {
			g.write(log[n:min(n+4096, len(log))])
			if _, err := f.Poll(); err != nil {
				t.Fatal(err)
			}
			if n > 8192 {
				f.Log()
			}
		}
		if whole := loaded(t, log); !reflect.DeepEqual(f.Log(), whole) {
			t.Errorf("%s: followed, it differs in %s", path, differs(f.Log(), whole))
		}
	}
}
