package oracle

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A truth is the same after being written and read, with any repetition in it.
func TestTextRoundTrip(t *testing.T) {
	cycle := func(n int, addresses ...uint64) (frames []Frame) {
		for range n {
			for _, a := range addresses {
				frames = append(frames, Frame{Kind: "return", Address: a})
			}
		}
		return frames
	}
	for _, frames := range [][]Frame{
		{{Kind: "pc", Address: 0x400000}},
		append(cycle(50000, 1), Frame{Kind: "stop", Address: 9}),
		append(append([]Frame{{Kind: "pc", Address: 7}, {Kind: "context"}}, cycle(20, 1, 2, 3)...), cycle(5, 2, 3, 3)...),
		append(cycle(3, 1, 1, 2), Frame{Kind: "update", Address: 1}),
	} {
		want := &Truth{Comment: "one\ntwo", Frames: frames, Top: TopRow, TSO: 4, Capability: -1, Shift: 2}
		var text bytes.Buffer
		if err := want.WriteText(&text, func(uint64) string { return "a name" }); err != nil {
			t.Fatal(err)
		}
		got, err := ReadText(bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, &text)
		}
		if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Truth{})); d != "" {
			t.Errorf("read other than written:\n%s", d)
		}
		if n := strings.Count(text.String(), "\n"); n > 40 {
			t.Errorf("%d frames took %d lines", len(frames), n)
		}
	}
}
