package closures

import (
	"bytes"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Of what was allocated between two censuses, as much survives as there is more of it.
func TestFates(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(logtest.Divided().End()))
	if err != nil {
		t.Fatal(err)
	}
	f := FatesOf(p, &p.HeapProfiles[0], profile.Range{From: 15e8})
	if f == nil {
		t.Fatal("there is nothing")
	}
	// One block, which stands for a hundred.
	if f.Allocated != 400_000 || f.After-f.Before != 1600 || f.Blocks != 1 {
		t.Fatalf("%v bytes in %d blocks, grown from %d to %d", f.Allocated, f.Blocks, f.Before, f.After)
	}
	want := map[string][3]float64{"Main.Node": {200_000, 0, 0}, "Main.main": {200_000, 1600, 1600. / 200_000}}
	for _, r := range f.Rows {
		if w, ok := want[r.Name]; ok {
			part, _ := r.Survives()
			if got := [3]float64{r.Allocated, float64(r.Grown), part}; got != w {
				t.Errorf("%s: %v, want %v", r.Name, got, w)
			}
			delete(want, r.Name)
		}
		if _, known := r.Survives(); known != (r.Allocated > 0) {
			t.Errorf("%s: survives: %v", r.Name, known)
		}
	}
	if len(want) > 0 || f.Grew()[0].Name != "Main.main" || len(f.Grew()) != 1 {
		t.Errorf("missing %v; what grew: %+v", want, f.Grew())
	}
	if FatesOf(p, &p.HeapProfiles[0], profile.Range{From: 25e8}) != nil {
		t.Error("one census is enough")
	}
}
