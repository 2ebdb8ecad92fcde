package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/printable"
	"ccagent/profile/logtest"
)

// Every command prints or refuses a log with damaged bytes: none of 1,180 mutated logs makes
// one of ten commands panic, exit with an undocumented status, or print control characters.
func TestMutatedLogs(t *testing.T) {
	const each = 118
	sources := mutationSources(t)
	if n := each * len(sources); n != 1180 {
		t.Fatalf("%d mutated logs", n)
	}
	for name, log := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			for seed := range uint64(each) {
				if err := os.WriteFile(path, mutated(log, seed), 0o600); err != nil {
					t.Fatal(err)
				}
				for _, args := range [][]string{
					{"hot", path}, {"source", path, "Physics.hs"}, {"stacks", path}, {"ccs", path}, {"timeline", path},
					{"info", path}, {"doctor", path}, {"heap", path}, {"gc", path}, {"export", "--to", "folded", path},
				} {
					printsOrRefuses(t, fmt.Sprintf("%s, seed %d", args[0], seed), args)
				}
			}
		})
	}
}

// printsOrRefuses runs a command in this process, so that a panic ends the test.
func printsOrRefuses(t *testing.T, what string, args []string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(args, &stdout, &stderr)
	if status != 0 && status != exitUnreadable && status != exitWrongCall || status != 0 && stderr.Len() == 0 {
		t.Errorf("%s: status %d, %q", what, status, stderr.String())
	}
	if args[0] == "export" {
		return // its output is data for other programs
	}
	for _, line := range strings.Split(stdout.String()+stderr.String(), "\n") {
		if printable.Line(line) != line {
			t.Errorf("%s prints %q", what, line)
		}
	}
}

// mutationSources returns ten logs, of captures and of GHC's run-time system.
func mutationSources(t *testing.T) map[string][]byte {
	sources := map[string][]byte{
		"nbody": logtest.NBody().End(), "abrupt": logtest.NBody().EndAbruptly(false), "run": logtest.Run(1, true).End(), "exact": logtest.DamagedExact(),
	}
	for _, name := range []string{"9.0.2-prof", "9.0.2-hT", "9.10.3-ipe", "9.10.3-ticky", "9.6.6-concurrent", "9.10.3-hi"} {
		log, err := os.ReadFile(filepath.Join("..", "..", "eventlog", "testdata", "rts", name+".eventlog"))
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = log
	}
	return sources
}

// mutated returns a damaged log: bytes are replaced, inserted, removed or repeated, or the
// end is truncated.
func mutated(log []byte, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 47))
	b := bytes.Clone(log)
	for range 1 + rng.IntN(8) {
		if len(b) == 0 {
			return b
		}
		at := rng.IntN(len(b))
		n := min(len(b)-at, 1+rng.IntN(1<<rng.IntN(12)))
		switch rng.IntN(6) {
		case 0, 1:
			b[at] ^= byte(1 << rng.IntN(8))
		case 2:
			for i := range n {
				b[at+i] = byte(rng.Uint32())
			}
		case 3:
			b = append(b[:at], b[at+n:]...)
		case 4:
			b = append(b[:at+n], append(bytes.Clone(b[at:at+n]), b[at+n:]...)...)
		case 5:
			if rng.IntN(4) == 0 {
				b = b[:at]
			} else {
				clear(b[at : at+n])
			}
		}
	}
	return b
}
