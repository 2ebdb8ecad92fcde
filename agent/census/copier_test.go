package census

import (
	"errors"
	"testing"

	"ccagent/agent/hold"
	"ccagent/internal/testprog"
)

// Static data that is copied after the program ran on belongs to the heap that was copied: where that has been collected since, what CAFs lead to
// has moved, and the census is given up. At rest that goes for younger generations too.
func TestStaticDataOfACollectedHeap(t *testing.T) {
	r := idle(t, testprog.Options{}, "footprint", "live", "10", "rest")
	for _, c := range []struct {
		name      string
		collected int // the number of the generation, from the oldest on; 0 for none
		atRest    bool
		given     error
	}{
		{"not collected", 0, true, nil}, {"the oldest", 1, false, ErrCollected}, {"a younger one at rest", 2, true, ErrCollected},
		{"a younger one", 2, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Keep: 1 << 28}
			cp, _, err := r.prepare(o)
			if err != nil {
				t.Fatal(err)
			}
			defer cp.free()
			census := newCensus(r, o)
			if err := stilled(r, func(s *hold.Still) error {
				err := r.stand(s, census, Options{})
				if err == nil {
					_, err = cp.look(t.Context(), r, census, o, census.Time, false)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !cp.hasData {
				t.Fatal("it was not copied while the program stood, though it might stand as long as it takes")
			}
			cp.beside, cp.hasData, census.AtRest = true, false, c.atRest
			if all := census.Descriptors.Generations; c.collected > 0 {
				all[len(all)-c.collected].Collections++ // as if it had not been collected so often then
			}
			if err := cp.after(r, census); !errors.Is(err, c.given) {
				t.Fatalf("error %v, want %v", err, c.given)
			}
			if !cp.hasData {
				t.Error("it was not copied")
			}
		})
	}
}
