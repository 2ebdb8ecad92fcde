package closures

import (
	"testing"

	"ccagent/heap"
)

// A program can make as many info tables as it likes.
func TestRegistryIsBounded(t *testing.T) {
	r := NewRegistry()
	for i := range uint64(maxClosures + 10) {
		r.Of(Place{1, i}, heap.Info{}, nil)
	}
	if len(r.at) != maxClosures || r.Of(Place{2, 0}, heap.Info{}, nil) != nil {
		t.Errorf("%d info tables are held", len(r.at))
	}
}
