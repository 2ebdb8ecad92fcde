package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/ghc"
	"ccagent/internal/programlogs"
	"ccagent/internal/testprog"
)

// TestProgramLogs records each kind of program of this machine's architecture that ghc.Programs lists, and stores its log.
func TestProgramLogs(t *testing.T) {
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: "scripts/bench programs"})
	}
	testprog.NeedRoot(t)
	_, own := testprog.GHC(t, "")
	view := func(into any, args ...string) error {
		r := run(t, command(t, ccview, append(args, "--format", "json")...))
		if r.status != 0 {
			return fmt.Errorf("ccview %s: status %d\n%s", strings.Join(args, " "), r.status, r.stderr)
		}
		return json.Unmarshal([]byte(r.stdout), into)
	}
	for _, k := range programlogs.KindsOf("amd64") {
		t.Run(k.Name(), func(t *testing.T) {
			argv := runOf(t, k, own)
			compileCalls(t, argv[0], argv[1:]...)
			log, r := record(t, append(k.Flags(), "--max-overhead", "0"), argv[0], argv[1:]...)
			if err := programlogs.Record(view, "../..", k, log, r.stdout+r.stderr); err != nil {
				t.Errorf("%v\n%s", err, r.stderr)
			}
		})
	}
}

// runOf builds a program of a kind, and gives what runs it for half a second. own is the machine's release of GHC.
func runOf(t *testing.T, k programlogs.Kind, own string) []string {
	t.Helper()
	switch k.Form {
	case ghc.Embedded:
		_, _, _, lib, host := buildEmbedded(t)
		return []string{host, lib, "30"}
	case ghc.Interpreted:
		interpreter, _ := testprog.GHC(t, "")
		return []string{interpreter, "-e", "main", filepath.Join(testprog.Source(t, "interpreted"), "Main.hs")}
	}
	o := buildWay(t, k.Way)
	if o.Release = k.Release; k.Release == own {
		o.Release = ""
	}
	exe := buildForm(t, "seen", k.Form, o)
	return append([]string{exe, programlogs.Cells, programlogs.Rounds, "3700000"}, programlogs.Collect...)
}
