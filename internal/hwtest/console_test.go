package hwtest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sent(t *testing.T, results ...Result) string {
	t.Helper()
	var console bytes.Buffer
	for i := range results {
		if err := SendResult(&console, &results[i]); err != nil {
			t.Fatal(err)
		}
	}
	return console.String()
}

func someResults() []Result {
	r := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 10_000) // more than a line, and gzip cannot shrink it
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	return []Result{
		{Name: "first", Stdout: "out\n@hw not a line of ours\n", Files: map[string][]byte{"/tmp/a": noise, "/tmp/empty": {}}},
		{Name: "second", Status: 125, Stderr: "err", Seconds: 1.5},
	}
}

// Results arrive as sent, whatever the kernel writes between their lines.
func TestConsole(t *testing.T) {
	want := someResults()
	text := sent(t, want...)
	text = "[ 0.0] booting\r\n" + strings.ReplaceAll(text, "\n", "\r\n") + "reboot: Power down"
	text = strings.Replace(text, "@hw ", "half a line of the kernel's@hw ", 1)
	text = strings.Replace(text, "\n@end", "\nan oops\n@end", 1)
	var notes []string
	got, err := Results(strings.NewReader(text), func(line string) { notes = append(notes, line) })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"[ 0.0] booting", "an oops", "reboot: Power down"}, notes); d != "" {
		t.Error(d)
	}
}

// Damaged results are an error; results before the damage are returned.
func TestGarbledConsole(t *testing.T) {
	all := someResults()
	first := sent(t, all[0])
	text := first + sent(t, all[1])
	lines := strings.SplitAfter(text[len(first):], "\n")
	for name, tail := range map[string]string{
		"cut":          lines[0],
		"flipped":      strings.Replace(lines[0], "@hw H", "@hw I", 1) + strings.Join(lines[1:], ""),
		"line missing": strings.Join(lines[1:], ""),
		"line twice":   lines[0] + strings.Join(lines, ""),
		"no checksum":  "@end 12",
	} {
		got, err := Results(strings.NewReader(first+tail), func(string) {})
		if !errors.Is(err, ErrConsole) || len(got) != 1 {
			t.Errorf("%s: %d results, %v", name, len(got), err)
		}
	}
}
