package push

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ccagent/profile"
)

// What is sent of a log needs nothing of its collections, which are most of its events: without them it is the same, to the byte.
func TestCollectionsAreNotSent(t *testing.T) {
	paths, err := filepath.Glob("../internal/programlogs/testdata/*.eventlog.gz")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	sent, collections := 0, 0
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		log, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all, err := profile.Load(bytes.NewReader(log))
		if err != nil {
			t.Fatal(err)
		}
		alone, err := profile.LoadSamples(bytes.NewReader(log))
		if err != nil {
			t.Fatal(err)
		}
		collections += len(all.GCs)
		if len(alone.GCs) != 0 || len(alone.Heap) != 0 || alone.Duration != all.Duration || alone.Samples() != all.Samples() || !reflect.DeepEqual(alone.Accounting, all.Accounting) {
			t.Errorf("%s: %d collections, %d figures of the heap, %d and %d samples, %d and %d ns, %+v and %+v", path, len(alone.GCs), len(alone.Heap),
				alone.Samples(), all.Samples(), alone.Duration, all.Duration, alone.Accounting, all.Accounting)
		}
		want, got := bodyOf(t, all), bodyOf(t, alone)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes are sent, %d with collections", path, len(got), len(want))
		}
		sent += len(want)
	}
	if sent == 0 || collections == 0 {
		t.Errorf("%d bytes are sent of logs with %d collections", sent, collections)
	}
}

// bodyOf is what Parca is sent of a log.
func bodyOf(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	b, err := Of(p, profile.Range{}, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Profiles) == 0 {
		return nil
	}
	r, err := Parca.Request([]*Batch{b})
	if err != nil {
		t.Fatal(err)
	}
	return r.Body
}
