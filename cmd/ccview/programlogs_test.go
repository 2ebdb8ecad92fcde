package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ccagent/internal/programlogs"
)

// Of a log of each kind of program that tests profile, ccview shows what it showed when the log was made; and that agrees with what the
// program's run said.
func TestProgramLogs(t *testing.T) {
	view := func(into any, args ...string) error {
		r := ccview(t, append(args, "--format", "json")...)
		if r.status != 0 {
			return fmt.Errorf("ccview %s: status %d\n%s", strings.Join(args, " "), r.status, r.stderr)
		}
		return json.Unmarshal([]byte(r.stdout), into)
	}
	const root = "../.."
	names, err := filepath.Glob(filepath.Join(root, programlogs.Folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := programlogs.Kinds()
	for _, k := range kinds {
		t.Run(k.Name(), func(t *testing.T) {
			t.Parallel()
			row, err := programlogs.Stored(root, k)
			if err != nil || row == nil {
				t.Fatalf("no log is stored, %v: run scripts/bench programs", err)
			}
			log, err := programlogs.Unpack(root, k, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			seen, err := programlogs.Look(view, log)
			if err != nil {
				t.Fatal(err)
			}
			if row.Kind != k || !reflect.DeepEqual(seen, row.Seen) {
				t.Errorf("it shows\n%+v\nand is stored with\n%+v", seen, row.Seen)
			}
			for _, problem := range row.Check() {
				t.Error(problem)
			}
		})
	}
	if len(kinds) != len(names) {
		t.Errorf("%d logs are stored in %s, of %d kinds of programs that are tested", len(names), programlogs.Folder, len(kinds))
	}
}
