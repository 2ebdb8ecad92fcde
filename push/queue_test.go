package push

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

// answers is an engine that gives one answer after the other, and then the last one.
type answers struct {
	list []func(r *http.Request) (*http.Response, error)
	n    int
	at   []time.Time
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	i := min(a.n, len(a.list)-1)
	a.n++
	a.at = append(a.at, time.Now())
	return a.list[i](r)
}

func status(code int, contentType, body string, headers ...string) func(r *http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {contentType}}
		for i := 0; i < len(headers); i += 2 {
			h.Set(headers[i], headers[i+1])
		}
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func down(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

// slow never answers.
func slow(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

var taken = status(200, protobuf, "")

// batch is what Read makes of every log in these tests.
func batch(t testing.TB) *Batch {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(logtest.NBody().End()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Of(p, wholeLog, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func queue(t *testing.T, a *answers, o Options) *Queue {
	t.Helper()
	b := batch(t)
	if o.Read == nil {
		o.Read = func(path string) (*Batch, error) {
			if path == "gone" {
				return nil, fs.ErrNotExist
			}
			return b, nil
		}
	}
	q, err := NewQueue(&Target{Engine: OTLP, URL: "http://engine:4318", Transport: a}, o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A log is sent until the engine takes it, at growing intervals or when the engine asks, whatever
// it answers in between; one that it refuses is dropped, counted and reported, and the next one sent.
func TestQueueAgainstBadEngines(t *testing.T) {
	type list = []func(*http.Request) (*http.Response, error)
	for name, c := range map[string]struct {
		answers  list
		sent     uint64
		attempts uint64
		dropped  map[Reason]uint64
		rejected uint64
		least    time.Duration
		reported string
	}{
		"takes":   {list{taken}, 2, 2, nil, 0, 0, ""},
		"down":    {list{down, down, down, taken}, 2, 5, nil, 0, 3500 * time.Millisecond, "connection refused; trying again"},
		"slow":    {list{slow, taken}, 2, 3, nil, 0, DefaultTimeout, "trying again"},
		"5xx":     {list{status(500, "", ""), status(503, "", ""), taken}, 2, 4, nil, 0, 0, "answers again"},
		"asks":    {list{status(429, "", "", "Retry-After", "120"), taken}, 2, 3, nil, 0, 120 * time.Second, ""},
		"4xx":     {list{status(400, "text/plain", "no\x1b[31m such\nfield"), taken}, 1, 2, map[Reason]uint64{Refused: 1}, 0, 0, "one dropped: refused: Bad Request: no[31m such field"},
		"garbage": {list{status(200, protobuf, "\xff\xff\xff"), status(200, "text/html", "<html>"), taken}, 2, 4, nil, 0, 0, "no such engine"},
		"moved":   {list{status(302, "", "", "Location", "http://other/"), taken}, 1, 2, map[Reason]uint64{Refused: 1}, 0, 0, "Found"},
		"partial": {list{status(200, protobuf, "\x0a\x07\x08\x03\x12\x03bad")}, 2, 2, nil, 6, 0, "3 of the profiles were rejected: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reported []string
				a := &answers{list: c.answers}
				q := queue(t, a, Options{Report: func(s string) { reported = append(reported, s) }})
				begun := time.Now()
				q.Add("one")
				q.Add("two")
				q.Drain(t.Context())
				s := q.Stats()
				if s.Sent != c.sent || s.Attempts != c.attempts || s.Rejected != c.rejected || s.Waiting != 0 || s.Failing != "" {
					t.Errorf("%+v", s)
				}
				for _, r := range []Reason{Full, Refused, Gone, Unreadable, GaveUp} {
					if s.Dropped[r] != c.dropped[r] {
						t.Errorf("dropped %v, want %v", s.Dropped, c.dropped)
					}
				}
				if took := time.Since(begun); took < c.least || !strings.Contains(strings.Join(reported, "\n"), c.reported) {
					t.Errorf("took %v, reported %q", took, reported)
				}
			})
		})
	}
}

// A full queue drops what waits longest, and what waits outlives the queue. Logs that are gone are
// passed over.
func TestQueueIsBounded(t *testing.T) {
	spill := filepath.Join(t.TempDir(), "otlp.json")
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, &answers{list: []func(*http.Request) (*http.Response, error){down}}, Options{Max: 3, Spill: spill})
		for _, p := range []string{"a", "b", "gone", "c", "d"} {
			q.Add(p)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		q.Run(ctx)
		stop()
		if s := q.Stats(); s.Dropped[Full] != 2 || s.Waiting != 2 || s.Dropped[Gone] != 1 || s.Failing == "" || s.Attempts < 12 || s.Attempts > 40 {
			t.Errorf("%+v", s)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var read []string
		b := batch(t)
		q := queue(t, &answers{list: []func(*http.Request) (*http.Response, error){taken}}, Options{Spill: spill,
			Read: func(path string) (*Batch, error) { read = append(read, path); return b, nil }})
		q.Drain(t.Context())
		if !slices.Equal(read, []string{"c", "d"}) || q.Stats().Sent != 2 {
			t.Errorf("went on with %v: %+v", read, q.Stats())
		}
	})
	if text, err := os.ReadFile(spill); err != nil || string(text) != "[]" {
		t.Errorf("%q is left: %v", text, err)
	}
	if err := os.WriteFile(spill, []byte(`["a","b`), 0o600); err != nil {
		t.Fatal(err)
	}
	if q := queue(t, &answers{}, Options{Spill: spill}); q.Stats().Waiting != 0 {
		t.Errorf("of a damaged spill: %+v", q.Stats())
	}
}

// An engine that is down for an hour, in which a host closes the pieces of 30 processes each minute, gets them all when it answers, in
// order, also those from before the daemon was started anew. Attempts do not grow with what waits. Where the queue has room for fewer, the
// oldest are dropped, and counted.
func TestQueueWhileAnEngineIsDownForAnHour(t *testing.T) {
	const processes, minutes = 30, 60
	for name, c := range map[string]struct{ room, dropped int }{
		"room":    {0, 0},
		"no room": {1000, processes*minutes - 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spill, b := filepath.Join(t.TempDir(), "otlp.json"), batch(t)
				begun := time.Now()
				engine := &answers{list: []func(*http.Request) (*http.Response, error){func(r *http.Request) (*http.Response, error) {
					if time.Since(begun) < time.Hour {
						return down(r)
					}
					return taken(r)
				}}}
				var asked []string // for requests, in order
				var reported []string
				anew := func() *Queue {
					return queue(t, engine, Options{Max: c.room, Spill: spill, Report: func(s string) { reported = append(reported, s) },
						Read: func(path string) (*Batch, error) { asked = append(asked, path); return b, nil }})
				}
				var all []string
				var before Stats
				q := anew()
				ctx, stop := context.WithCancel(t.Context())
				ended := running(ctx, q)
				for minute := range minutes {
					for p := range processes {
						all = append(all, fmt.Sprintf("%d-%d", minute, p))
						q.Add(all[len(all)-1])
					}
					if minute == minutes/2 {
						stop()
						<-ended
						before = q.Stats()
						q = anew()
						ctx, stop = context.WithCancel(t.Context())
						ended = running(ctx, q)
					}
					time.Sleep(time.Minute)
				}
				// Up to the longest pause between attempts it is not known that the engine answers.
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				stop()
				<-ended
				s := q.Stats()
				dropped := int(before.Dropped[Full] + s.Dropped[Full])
				if want := uint64(len(all) - c.dropped); before.Sent != 0 || s.Sent != want || s.Waiting != 0 || s.Failing != "" || dropped != c.dropped {
					t.Errorf("before the queue was made anew %+v, after it %+v; want %d sent and %d dropped", before, s, want, c.dropped)
				}
				if n := len(s.Dropped) - 1; c.dropped == 0 && n >= 0 || n > 0 {
					t.Errorf("dropped for other reasons: %v", s.Dropped)
				}
				if tries := int(before.Attempts+s.Attempts) - int(s.Sent); tries < 2*60/5 || tries > 80 {
					t.Errorf("%d attempts failed in an hour", tries)
				}
				if sent := asked[len(asked)-int(s.Sent)+1:]; !slices.Equal(sent, all[len(all)-len(sent):]) {
					t.Errorf("what was sent is not in order, or not the newest: %v", sent)
				}
				if n := strings.Count(strings.Join(reported, "\n"), " dropped: "); n != c.dropped {
					t.Errorf("%d of %d dropped logs were reported", n, c.dropped)
				}
			})
		})
	}
}

// running runs a queue, and gives a channel that is closed when it has ended.
func running(ctx context.Context, q *Queue) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		q.Run(ctx)
		close(ended)
	}()
	return ended
}

// The names of logs that wait are not written for each that is sent, but before a pause and at the end.
func TestQueueSpillsRarely(t *testing.T) {
	spill := filepath.Join(t.TempDir(), "otlp.json")
	synctest.Test(t, func(t *testing.T) {
		var found []string
		look := func(answer func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
			return func(r *http.Request) (*http.Response, error) {
				text, err := os.ReadFile(spill)
				if err != nil {
					t.Error(err)
				}
				found = append(found, string(text))
				return answer(r)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ends := func(r *http.Request) (*http.Response, error) {
			stop()
			return nil, r.Context().Err()
		}
		q := queue(t, &answers{list: []func(*http.Request) (*http.Response, error){look(taken), look(taken), look(down), look(taken), ends}}, Options{Spill: spill})
		for _, p := range []string{"a", "b", "c", "d"} {
			q.Add(p)
		}
		q.Run(ctx)
		all, rest := `["a","b","c","d"]`, `["c","d"]`
		if want := []string{all, all, all, rest}; !slices.Equal(found, want) {
			t.Errorf("while sending: %q, want %q", found, want)
		}
	})
	if text, err := os.ReadFile(spill); err != nil || string(text) != `["d"]` {
		t.Errorf("%q is left: %v", text, err)
	}
}

// Logs are sent together, as many as the queue may join and as their maker takes of them. Where a request of several is refused each of them
// is sent by itself, so that one that the engine does not take costs no other. What comes later is sent together again.
func TestQueueSendsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, sent []string
		bad := map[string]bool{"d": true, "gone": true}
		var last []string
		engine := func(r *http.Request) (*http.Response, error) {
			sent = append(sent, strings.Join(last, ""))
			if slices.Contains(last, "d") {
				return status(400, "text/plain", "no")(r)
			}
			return taken(r)
		}
		b := batch(t)
		q := queue(t, &answers{list: []func(*http.Request) (*http.Response, error){engine}}, Options{Together: 4, Max: 12,
			Request: func(_ context.Context, paths []string, e Engine) (*Request, int, error) {
				asked = append(asked, strings.Join(paths, ""))
				if paths[0] == "gone" {
					return nil, 0, fs.ErrNotExist
				}
				n := 1
				for n < len(paths) && paths[n] != "gone" && paths[n] != "f" { // f is another user's
					n++
				}
				last = paths[:n]
				r, err := e.Request([]*Batch{b})
				return r, n, err
			}})
		q.Add("a", "b", "c", "d", "e", "f", "g", "gone", "h", "i", "j", "k")
		q.Drain(t.Context())
		if want := []string{"abcd", "a", "b", "c", "d", "e", "fg", "hijk"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q; asked for %q", sent, want, asked)
		}
		if s := q.Stats(); s.Sent != uint64(12-len(bad)) || s.Dropped[Refused] != 1 || s.Dropped[Gone] != 1 || s.Attempts != uint64(len(sent)) || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// What is being sent together is not dropped for what comes meanwhile.
func TestQueueKeepsWhatIsBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batch(t)
		var q *Queue
		var asked []string
		q = queue(t, &answers{list: []func(*http.Request) (*http.Response, error){taken}}, Options{Together: 2, Max: 3,
			Request: func(_ context.Context, paths []string, e Engine) (*Request, int, error) {
				if asked = append(asked, paths...); len(asked) == 2 {
					q.Add("c", "d", "e")
				}
				r, err := e.Request([]*Batch{b})
				return r, len(paths), err
			}})
		q.Add("a", "b")
		q.Drain(t.Context())
		if want := []string{"a", "b", "e"}; !slices.Equal(asked, want) || q.Stats().Sent != 3 || q.Stats().Dropped[Full] != 2 {
			t.Errorf("asked for %q, want %q: %+v", asked, want, q.Stats())
		}
	})
}

// A log that is never taken is given up where that is asked for, and what waits behind it is not tried.
func TestQueueGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue(t, &answers{list: []func(*http.Request) (*http.Response, error){down}}, Options{GiveUp: time.Minute})
		begun := time.Now()
		q.Add("a")
		q.Add("b")
		q.Drain(t.Context())
		if s, took := q.Stats(), time.Since(begun); s.Dropped[GaveUp] != 1 || s.Waiting != 1 || took > time.Minute || took < 15*time.Second {
			t.Errorf("after %v: %+v", took, s)
		}
	})
}

// Answers may be anything.
func FuzzAnswer(f *testing.F) {
	f.Add("application/x-protobuf", []byte("\x0a\x07\x08\x03\x12\x03bad"))
	f.Add("application/proto", []byte{})
	f.Add("application/json", []byte("{}"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		for _, e := range Engines {
			if rejected, why, err := e.Answer(contentType, body); err != nil && !errors.Is(err, errNoEngine) {
				t.Errorf("%s: %d %q %v", e.Name, rejected, why, err)
			}
		}
		beginning(body)
	})
}

// A disk that hangs while the spill is written holds up nobody who asks for figures.
func TestStatsDoNotWaitForTheSpill(t *testing.T) {
	spill := filepath.Join(t.TempDir(), "otlp.json")
	q := queue(t, &answers{}, Options{Spill: spill})
	if err := unix.Mkfifo(spill+".new", 0o600); err != nil { // who opens it waits
		t.Fatal(err)
	}
	added := make(chan struct{})
	go func() {
		q.Add("a")
		close(added)
	}()
	for q.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	select {
	case <-added:
		t.Error("the disk does not hang")
	default:
	}
	if text, err := os.ReadFile(spill + ".new"); err != nil || string(text) != `["a"]` {
		t.Errorf("the spill has %q, %v", text, err)
	}
	<-added
}
