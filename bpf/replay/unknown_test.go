//go:build linux && cgo

package replay

import (
	"slices"
	"strings"
	"testing"
)

// The newest layout, which is used for unknown versions of GHC, walks the stacks of every
// version correctly; where its offsets are wrong the walker's invariants reject what it
// reads.
func TestNewestLayoutElsewhere(t *testing.T) {
	right, refused := 0, 0
	for _, name := range snapshots(t) {
		s := readSnapshot(t, name)
		known := FromSnapshot(s, SnapshotFrames)
		want, err := Walk(known)
		if err != nil {
			t.Fatal(err)
		}
		assumed := known
		assumed.Layout = Layout("", s.Profiled, s.Threaded, s.Text)
		got, err := Walk(assumed)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case slices.Equal(got.Frames, want.Frames):
			right++
		case Stop(got.Stop) == StopNoHaskell && len(got.Frames) < len(want.Frames) &&
			slices.Equal(got.Frames, want.Frames[:len(got.Frames)]):
			// The Task of a safe call, or of a thread that requested a GC, has its InCall at
			// another offset.
			refused++
			if !strings.Contains(name, "safe") && !strings.Contains(name, "collect") {
				t.Errorf("%s: no Haskell context", name)
			}
		default:
			t.Errorf("%s: by the newest layout the stack has %d frames and ends by %s, but truly it has %d and ends by %s",
				name, len(got.Frames), Stop(got.Stop), len(want.Frames), Stop(want.Stop))
		}
	}
	t.Logf("%d stacks are the same, %d have no context", right, refused)
}
