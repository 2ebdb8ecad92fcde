//go:build linux && cgo && amd64

package replay

import (
	"errors"
	"testing"

	"ccagent/bpf/replay/oracle"
	"ccagent/internal/elftest"
	"ccagent/symbolize/cfi"
)

// compiled caches each file's call frame information, compiled as the agent does.
var compiled = map[string]*cfi.Table{}

func compile(t *testing.T, path string) *cfi.Table {
	t.Helper()
	if table, ok := compiled[path]; ok {
		return table
	}
	e := elftest.Open(t, path)
	table, err := cfi.Compile(e, cfi.DefaultLimits)
	if err != nil && !errors.Is(err, cfi.ErrNone) {
		t.Fatalf("compile call frame information of %s: %v", path, err)
	}
	compiled[path] = table
	return table
}

// tablesOf makes the tables of a process as the agent would.
func tablesOf(t *testing.T, p *oracle.Program) *Tables {
	t.Helper()
	tables := &Tables{}
	for _, m := range p.Mappings() {
		table := compile(t, m.Path)
		if table == nil {
			continue
		}
		var rows, rules []byte
		for _, r := range table.Rows {
			rows = r.Append(rows)
		}
		for i := range table.Rules {
			rules = table.Rules[i].Append(rules)
		}
		if err := tables.Add(m.Start, m.End, m.Bias+table.Base, rows, rules); err != nil {
			t.Fatal(err)
		}
	}
	return tables
}
