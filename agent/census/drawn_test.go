package census

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ccagent/agent/hold"
	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
)

// Intervals hold the true values in about 95 of 100 random samples of a known population: even bands, and one that is
// in a few megablocks only.
func TestIntervalsHold(t *testing.T) {
	const all, draws = 400, 2000
	random := rand.New(rand.NewPCG(1, 2))
	for _, population := range []struct {
		name string
		at   func(i int) float64
	}{
		{"even", func(i int) float64 { return 1000 + 100*math.Sin(float64(i)) }},
		{"uneven", func(i int) float64 { return 1e6 * math.Exp(random.NormFloat64()) }},
		{"half", func(i int) float64 { return float64(i%2) * 5e5 }},
	} {
		name, at := population.name, population.at
		values, truth := make([]float64, all), 0.0
		for i := range values {
			values[i] = at(i)
			truth += values[i]
		}
		for _, n := range []int{32, 100, 399, all} {
			held := 0
			for range draws {
				var m moments
				for _, i := range random.Perm(all)[:n] {
					m.add(values[i], 0)
				}
				total, v := m.estimate(n, all)
				if n == all && math.Abs(total-truth) > 1e-6*truth || math.IsNaN(v) {
					t.Fatalf("%s: of all it is %v ± %v, and %v", name, total, v, truth)
				}
				if math.Abs(total-truth) <= student(n-1)*math.Sqrt(v)+1e-6*truth {
					held++
				}
			}
			least := 0.9
			if n < 100 {
				least = 0.85 // the mean of a few of an uneven population is not distributed normally
			}
			if part := float64(held) / draws; part < least {
				t.Errorf("%s: %d of %d: the interval held in %.3f", name, n, all, part)
			}
		}
	}
	// A band that has a part of each megablock's words is known better by all words than by the number of
	// megablocks, of which a few are almost empty.
	words := make([]float64, all)
	var known, truth float64
	for i := range words {
		if words[i] = 1e5; i < 4 {
			words[i] = 1e3
		}
		known += words[i]
		truth += words[i] * (0.3 + 0.01*math.Sin(float64(i)))
	}
	held := 0
	for range draws {
		var m, w moments
		for _, i := range random.Perm(all)[:64] {
			m.add(words[i]*(0.3+0.01*math.Sin(float64(i))), words[i])
			w.add(words[i], words[i])
		}
		total, v := m.ratio(&w, known, 64, all)
		if math.Abs(total-truth) <= student(63)*math.Sqrt(v) {
			held++
		}
	}
	if part := float64(held) / draws; part < 0.92 {
		t.Errorf("by ratio the interval held in %.3f", part)
	}
	for freedom, want := range map[int]float64{4: 2.776, 10: 2.228, 30: 2.042, 1000: 1.962} {
		if got := student(freedom); math.Abs(got-want) > 0.01 {
			t.Errorf("t with %d degrees of freedom is %v, want %v", freedom, got, want)
		}
	}
}

// idle starts a program that has built its heap, and collects nothing any more.
func idle(t *testing.T, o testprog.Options, program string, args ...string) *Reader {
	t.Helper()
	testprog.NeedRoot(t)
	cmd := exec.Command(testprog.Build(t, program, o), args...)
	cmd.Dir = t.TempDir()
	cmd.Stderr = os.Stderr
	_, out := testprog.Start(t, cmd)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: cmd, log: filepath.Join(cmd.Dir, "log")}
	r.inspect(t)
	reader, _, err := r.reader(t)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

// stilled stops a program, again where a busy machine does not stop all of its threads in time.
func stilled(r *Reader, f func(s *hold.Still) error) (err error) {
	for range restTries {
		if _, err = hold.Stilled(r.PID, f); !errors.Is(err, ErrBusy) {
			break
		}
	}
	return err
}

// partly takes a census of a program that stands for so short that a part of its megablocks is read, and lets nothing be
// read when it runs on.
func partly(t *testing.T, r *Reader, stood int) *Census {
	t.Helper()
	c, _, err := r.prepare(Options{MaxPause: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.free()
	census := newCensus(r, Options{})
	census.AtRest = true
	if err = stilled(r, func(s *hold.Still) error {
		if err := r.stand(s, census, Options{}); err != nil {
			return err
		}
		_, err := c.look(t.Context(), r, census, Options{MaxPause: time.Nanosecond}, census.Time, false)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if c.drawing == nil {
		t.Fatal("all was read while the program stood")
	}
	w := c.drawing
	w.read = min(w.read, stood)
	w.units = w.units[:w.read]
	if err := c.finish(context.Background(), r, census, Options{}, false); err != nil {
		t.Fatal(err)
	}
	if census.Draw == nil || census.Draw.Drawn != w.read || census.Draw.Megablocks != w.all {
		t.Fatalf("%+v of %d megablocks", census.Draw, w.all)
	}
	return census
}

// Of a heap of which a random part is counted, the true values of bands lie in their intervals, as an exact census of
// the same heap says.
func TestDrawnAgainstExact(t *testing.T) {
	r := idle(t, testprog.Options{}, "footprint", "live", "100", "rest")
	exact, err := r.AtRest(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	truth := bandsOf(r, exact)
	large := map[string]bool{}
	for band, bytes := range truth {
		large[band] = bytes > sum(truth)/100
	}
	held, all := 0, 0
	const draws = 8
	for range draws {
		c := partly(t, r, leastDrawn)
		for _, b := range c.Detailed(r.Profiled, r.Tables.Name) {
			if !large[b.Name] {
				continue
			}
			all++
			if off := math.Abs(float64(b.Bytes) - float64(truth[b.Name])); off <= float64(b.Margin)+16 {
				held++
			} else {
				t.Logf("%s: %d ± %d, and %d", b.Name, b.Bytes, b.Margin, truth[b.Name])
			}
			if b.Margin == 0 || b.Margin > truth[b.Name]/10 {
				t.Errorf("%s: %d ± %d", b.Name, b.Bytes, b.Margin)
			}
		}
	}
	if all < 2*draws || held < all*6/10 { // bands of one draw are off together
		t.Errorf("%d of %d intervals hold what the exact census has", held, all)
	}
	// When it runs on, the rest is read: nothing is left out.
	c, err := r.AtRest(t.Context(), Options{MaxPause: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	differ, bytes := compare(bandsOf(r, c), truth)
	if c.Draw != nil || c.Manner != Beside || bytes > sum(truth)/1000 {
		t.Errorf("%+v, bands differ by %d bytes: %q", c.Draw, bytes, differ)
	}
}

// What younger generations have is copied while the program stands, of a heap that is kept too; what was not must not have been
// collected until it is. Then all of the heap is in the copy, once.
func TestYoungOfADrawnHeap(t *testing.T) {
	r := idle(t, testprog.Options{}, "footprint", "live", "100", "rest")
	exact, err := r.AtRest(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	truth := bandsOf(r, exact)
	for _, c := range []struct {
		name           string
		keep           uint64
		young, changed bool // it is copied while the program stands; the youngest generation is collected then
		all            bool // descriptors are read while it stands, and what nurseries have has survived a collection
		but            int  // so many megablocks, which are read later
	}{
		{"counted, collected", 0, false, true, false, 0}, {"kept, collected", 1 << 30, false, true, false, 0}, {"kept", 1 << 30, false, false, false, 0},
		{"kept, young at once", 1 << 30, true, false, false, 0}, {"kept, all but one, collected", 1 << 30, true, true, true, 1},
		{"kept, all young at once, collected", 1 << 30, true, true, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{MaxPause: time.Nanosecond, Keep: c.keep}
			cp, _, err := r.prepare(o)
			if err != nil {
				t.Fatal(err)
			}
			defer cp.free()
			census := newCensus(r, o)
			census.AtRest = true
			young := map[uint64]bool{}
			if err := stilled(r, func(s *hold.Still) error {
				err := r.stand(s, census, Options{})
				if err != nil || !c.young {
					if err == nil {
						_, err = cp.look(t.Context(), r, census, o, census.Time, false)
					}
					return err
				}
				until := uint64(0)
				if c.all {
					until = math.MaxUint64
				}
				if cp.drawing, err = r.draw(times{descriptors: until, stand: math.MaxUint64}, nil); err != nil {
					return err
				}
				census.Descriptors, cp.beside = cp.drawing.d, true
				lists, err := r.currents()
				if err != nil {
					return err
				}
				if cp.nursery, err = r.filled(t.Context(), census.Descriptors, lists, 0); err != nil {
					return err
				}
				if c.all {
					for _, u := range cp.drawing.units {
						for i := range u.groups {
							if g := &u.groups[i]; cp.nursery[g.Start] != nil {
								g.Flags |= ghc.BlockEvacuated
								young[g.Start] = true
							}
						}
					}
					cp.nursery = nil
					cp.drawing.stood -= c.but
				}
				return cp.standDrawn(r, census, o, times{stand: math.MaxUint64, end: math.MaxUint64})
			}); err != nil {
				t.Fatal(err)
			}
			for start := range cp.nursery {
				young[start] = true
			}
			if cp.drawing == nil || len(young) == 0 {
				t.Fatalf("all was read while the program stood, or no nursery: %d blocks", len(young))
			}
			if c.young {
				copied := 0
				for _, k := range cp.kept {
					if young[k.group.Start] {
						copied++
					}
				}
				for start, g := range cp.nursery {
					if g.Used() > 0 {
						t.Errorf("the nursery's block at %#x was not copied", start)
					}
				}
				if copied == 0 {
					t.Error("no block of a nursery was copied")
				}
			}
			if c.changed {
				census.Descriptors.Generations[0].Collections--
			}
			err = cp.finish(t.Context(), r, census, o, false)
			if c.changed && (!c.all || c.but > 0) { // else all that moves was copied by then
				if !errors.Is(err, ErrCollected) {
					t.Errorf("after a collection of the youngest generation: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer census.Copy.Close()
			once := map[uint64]bool{}
			for _, g := range census.Copy.Groups {
				if once[g.Start] {
					t.Errorf("the group at %#x was copied twice", g.Start)
				}
				once[g.Start] = true
			}
			if differ, bytes := compare(bandsOf(r, census), truth); bytes > sum(truth)/1000 {
				t.Errorf("bands differ by %d bytes: %q", bytes, differ)
			}
		})
	}
}

// A program that collects its heap again and again has a census of a random part of it, copied while it stood.
func TestHurry(t *testing.T) {
	s := situation{program: "retain", args: []string{"4000", "100000000"}}
	r := start(t, s)
	reader, site, err := r.reader(t)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Wait: time.Minute, MaxPause: time.Nanosecond, Hurry: true}
	for {
		c, err := reader.AtCollection(t.Context(), site, o)
		if err != nil {
			t.Fatal(err)
		}
		if c.Descriptors.Oldest().Collections < 4 {
			continue
		}
		if c.Manner != Beside || c.Draw != nil && (c.Draw.Drawn < leastCounted || c.Draw.Drawn >= c.Draw.Megablocks) {
			t.Errorf("%d %+v", c.Manner, c.Draw)
		}
		r.end(t)
		theirs := ownCensuses(t, r.log)[c.Descriptors.Oldest().Collections-1]
		ours := bandsOf(reader, c)
		for band, bytes := range theirs {
			margin := float64(0)
			if c.Draw != nil {
				margin = float64(c.Draw.Margins[band])
			}
			if off := math.Abs(float64(ours[band]) - float64(bytes)); bytes > sum(theirs)/10 && off > 3*margin+float64(bytes)/100 {
				t.Errorf("%s: %d ± %v, and %d", band, ours[band], margin, bytes)
			}
		}
		return
	}
}

// Whatever descriptors say, no megablock is looked at twice, and none beyond the end.
func FuzzHead(f *testing.F) {
	f.Add(make([]byte, heap.HeadBytes), uint64(3))
	long := make([]byte, heap.HeadBytes) // a segment as long as a megablock, that uses all there is
	binary.LittleEndian.PutUint64(long[ghc.BlockStart:], 0x4200000000+4*4096)
	binary.LittleEndian.PutUint64(long[ghc.BlockFree:], 1<<63)
	binary.LittleEndian.PutUint32(long[ghc.BlockCount:], ghc.BlocksPerMegablock)
	binary.LittleEndian.PutUint16(long[ghc.BlockFlags:], ghc.BlockNonmoving)
	f.Add(long, uint64(3))
	f.Fuzz(func(t *testing.T, text []byte, limit uint64) {
		if len(text) < heap.HeadBytes {
			return
		}
		limit = limit%8 + 1
		if g, whole := heap.Head(0x4200000000, text, limit); whole > limit || whole > 0 && g.Start != 0x4200000000+4*4096 {
			t.Errorf("%+v takes %d megablocks of %d", g, whole, limit)
		} else if whole > 0 && !g.IsFree() && g.Free-g.Start > whole*ghc.MegablockBytes {
			t.Errorf("of %d megablocks %+v uses more", whole, g)
		}
	})
}

// A sample is scaled by the words that its generation says it has, but not one that has all megablocks: a generation does not count the blocks that
// threads of the collector have begun, and what was read is all there is.
func TestAllThatWasReadIsNotScaled(t *testing.T) {
	layout, ok := heap.LayoutOf("9.0.2", false, true)
	if !ok {
		t.Fatal("the release is not known")
	}
	r := &Reader{Layout: layout}
	const info, words, all, known = 0x1000, 3, 4, 24
	label := &labels{name: func(uint64) string { return "closure" }}
	for units, want := range map[int]uint64{all: 8 * words * all, all / 2: 8 * known} {
		s := newStratum(r, Options{})
		s.known = known // all units together have half of it
		for range units {
			tally := heap.NewTally(layout, func(uint64) (heap.Info, bool) { return heap.Info{Type: ghc.Constr, Ptrs: words - 1}, true })
			tally.Add([]uint64{info, 0, 0})
			s.add(tally, words, label)
		}
		total, _ := estimate(all, newTally(r, Options{}), r, Options{}, label, s)
		var bytes uint64
		label.each(total, func(_ string, _, n, _ uint64) { bytes += n })
		if bytes != want {
			t.Errorf("of %d of %d megablocks: %d bytes, want %d", units, all, bytes, want)
		}
	}
}
