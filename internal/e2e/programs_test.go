package e2e

import (
	"testing"

	"ccagent/internal/testprog"
)

// A capture of a script that runs two programs distinguishes their code, though both have a
// Main.main and their sources the same name.
func TestTwoProgramsInOneCapture(t *testing.T) {
	a, b := testprog.Build(t, "alloc31", testprog.Options{}), testprog.Build(t, "spin31", testprog.Options{})
	log, _ := record(t, []string{"-e", "cpu-clock"}, "sh", "-c", a+" >/dev/null; "+b+" >/dev/null")
	type rows struct {
		Rows []struct {
			Element, Program, File string
			Samples                uint64
		}
	}
	var all rows
	view(t, &all, "hot", log)
	of := map[string]uint64{}
	for _, r := range all.Rows {
		if r.Program != "" {
			of[r.Program] += r.Samples
		}
		if r.Element == "Main.main" && r.Program == "" {
			t.Errorf("a Main.main of no program: %+v", r)
		}
	}
	if of["alloc31"] == 0 || of["spin31"] == 0 || len(of) != 2 {
		t.Errorf("samples by program: %v", of)
	}
	var one rows
	view(t, &one, "hot", log, "--program", "spin31")
	for _, r := range one.Rows {
		if r.Program == "alloc31" {
			t.Errorf("of the other program: %+v", r)
		}
	}
}
