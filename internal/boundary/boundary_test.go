// Package boundary tests the rules for imports between packages.
package boundary

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// order lists the top-level packages as docs/ARCHITECTURE.md does, each with the packages
// of this module that it may import, at any depth, besides its own sub-packages.
var order = map[string][]string{
	"eventlog":    {},
	"bpf":         {"internal/fair", "internal/ghc"},
	"perf":        {"bpf", "internal/restriction"},
	"symbolize":   {"eventlog", "internal/sandbox", "internal/credentials", "internal/ghc", "internal/pagecache"},
	"heap":        {"internal/ghc"},
	"agent":       {"perf", "bpf", "eventlog", "heap", "symbolize", "internal/capset", "internal/cgroup", "internal/credentials", "internal/fair", "internal/ghc", "internal/pagecache", "internal/printable", "internal/restriction", "internal/sandbox", "internal/transactions"},
	"profile":     {"eventlog", "internal/format", "internal/ghc", "internal/transactions"},
	"ui":          {"profile", "eventlog", "internal/format", "internal/printable", "internal/transactions"},
	"push":        {"profile", "eventlog"},
	"cmd/ccview":  {"push", "ui", "profile", "eventlog", "internal/buildinfo", "internal/format", "internal/manual", "internal/printable"},
	"cmd/ccagent": {"agent", "perf", "bpf", "eventlog", "symbolize", "profile", "push", "ui", "internal/buildinfo", "internal/credentials", "internal/format", "internal/manual", "internal/sandbox", "internal/printable", "internal/transactions"},
}

// inside lists, for parts with many packages, what each package may import of its own part.
// Every package of such a part must be listed.
var inside = map[string][]string{
	"profile/imports":     {},
	"profile/columns":     {"profile/imports"},
	"profile/interval":    {},
	"profile/curry":       {},
	"profile":             {"profile/columns", "profile/interval", "profile/curry"},
	"profile/threads":     {"profile", "profile/columns", "profile/interval"},
	"profile/closures":    {"profile", "profile/columns", "profile/curry", "profile/interval"},
	"profile/machinecode": {"profile", "profile/columns"},
	"profile/centres":     {"profile", "profile/columns", "profile/curry", "profile/interval"},
	"profile/source":      {"profile", "profile/columns", "profile/interval"},
	"profile/stacks":      {"profile", "profile/columns", "profile/interval"},
	"profile/timeline":    {"profile", "profile/columns"},
	"profile/activity":    {"profile", "profile/columns", "profile/interval"},
	"profile/diff":        {"profile", "profile/columns"},
	"profile/rewrite":     {"profile"},
	"profile/pieces":      {"profile", "profile/rewrite"},
	"profile/export":      {"profile", "profile/columns", "profile/stacks"},
	"profile/compat":      {"profile", "profile/columns", "profile/stacks"},
	"profile/footprint":   {"profile/columns"},
	"profile/conflicts":   {"profile", "profile/columns", "profile/interval"},
	"profile/diagnosis":   {"profile", "profile/columns"},
	"profile/reasons":     {"profile", "profile/columns", "profile/curry"},
	"profile/semantics":   {},
	"profile/logtest":     {},

	"agent/procfs":   {},
	"agent/config":   {},
	"agent/invoker":  {"agent/procfs", "agent/config"},
	"agent/hold":     {"agent/procfs", "agent/uprobe"},
	"agent/target":   {"agent/procfs", "agent/invoker", "agent/config", "agent/hold"},
	"agent/rtsites":  {},
	"agent/uprobe":   {},
	"agent/sink":     {"agent/invoker"},
	"agent/overhead": {"agent/procfs", "agent/uprobe"},
	"agent/process":  {"agent/procfs", "agent/invoker", "agent/rtsites", "agent/sink", "agent/uprobe"},
	// A source does not import another source; code that they share is in these packages.
	"agent/source":     {"agent/closures", "agent/overhead", "agent/process", "agent/sink"},
	"agent/closures":   {"agent/process"},
	"agent/census":     {"agent/closures", "agent/hold", "agent/overhead", "agent/process", "agent/procfs", "agent/rtsites", "agent/sink", "agent/source"},
	"agent/footprint":  {"agent/census", "agent/procfs"},
	"agent/series":     {"agent/census", "agent/closures", "agent/hold", "agent/overhead", "agent/process", "agent/procfs", "agent/rtsites", "agent/sink", "agent/source", "agent/uprobe"},
	"agent/retained":   {"agent/census", "agent/process"},
	"agent/alloc":      {"agent/overhead", "agent/process", "agent/sink", "agent/source", "agent/rtsites", "agent/uprobe"},
	"agent/cpu":        {"agent/overhead", "agent/process", "agent/procfs", "agent/sink", "agent/source"},
	"agent/blocked":    {"agent/dump", "agent/overhead", "agent/process", "agent/procfs", "agent/sink", "agent/source"},
	"agent/duplicated": {"agent/process", "agent/rtsites", "agent/source"},
	"agent/stm":        {"agent/overhead", "agent/process", "agent/procfs", "agent/source", "agent/rtsites", "agent/uprobe"},
	"agent/search":     {"agent/overhead", "agent/process", "agent/source", "agent/uprobe"},
	"agent/offcpu":     {"agent/overhead", "agent/process", "agent/procfs", "agent/sink", "agent/source"},
	"agent/rtsevents":  {},
	"agent/rts":        {"agent/overhead", "agent/process", "agent/procfs", "agent/sink", "agent/source", "agent/rtsites", "agent/rtsevents", "agent/uprobe"},
	"agent/ticky":      {"agent/overhead", "agent/process", "agent/sink", "agent/source", "agent/uprobe"},
	"agent/nursery":    {"agent/closures", "agent/overhead", "agent/process", "agent/sink", "agent/source", "agent/rtsites", "agent/uprobe"},
	"agent/ccs":        {"agent/overhead", "agent/process", "agent/sink", "agent/source"},
	"agent/sourcetest": {"agent/closures", "agent/invoker", "agent/overhead", "agent/process", "agent/sink", "agent/source"},
	"agent/doctor":     {"agent/process", "agent/procfs", "agent/rtsites"},
	"agent/engine": {"agent/procfs", "agent/invoker", "agent/target", "agent/process", "agent/sink", "agent/overhead", "agent/source",
		"agent/alloc", "agent/blocked", "agent/census", "agent/closures", "agent/cpu", "agent/duplicated", "agent/nursery", "agent/offcpu", "agent/rts", "agent/search", "agent/series", "agent/stm", "agent/ticky", "agent/ccs"},
	"agent/symbols":         {"agent/process"},
	"agent/resymbolize":     {"agent/invoker"},
	"agent/discovery":       {"agent/procfs"},
	"agent/daemon/control":  {},
	"agent/counters":        {"agent/process"},
	"agent/dump":            {"agent/hold", "agent/overhead", "agent/process", "agent/procfs"},
	"agent/daemon/metrics":  {"agent/counters", "agent/daemon/control"},
	"agent/daemon/segments": {"agent/discovery"},
	"agent/daemon": {"agent/config", "agent/counters", "agent/daemon/control", "agent/daemon/metrics", "agent/daemon/segments", "agent/discovery", "agent/engine",
		"agent/invoker", "agent/process", "agent/procfs", "agent/resymbolize", "agent/rtsites", "agent/sink", "agent/source", "agent/symbols"},
	"agent": {"agent/census", "agent/closures", "agent/dump", "agent/footprint", "agent/retained", "agent/rtsites", "agent/procfs", "agent/invoker", "agent/target", "agent/process", "agent/sink", "agent/source", "agent/symbols", "agent/engine"},

	"symbolize/elffile":         {},
	"symbolize/hsname":          {},
	"symbolize/hssource":        {},
	"symbolize/coredump":        {},
	"symbolize/dwarfindex":      {},
	"symbolize/cfi":             {"symbolize/elffile"},
	"symbolize/debuginfod":      {"symbolize/binary"},
	"symbolize/coderefs":        {"symbolize/elffile"},
	"symbolize/modulecode":      {"symbolize/elffile"},
	"symbolize/gccode":          {"symbolize/cfi", "symbolize/coderefs", "symbolize/elffile"},
	"symbolize/binary":          {"symbolize/elffile", "symbolize/dwarfindex", "symbolize/hsname"},
	"symbolize/sources":         {"symbolize/binary", "symbolize/coredump", "symbolize/hsname", "symbolize/hssource"},
	"symbolize/evidence":        {"symbolize/hsname", "symbolize/sources"},
	"symbolize/evidence/symtab": {"symbolize/evidence", "symbolize/binary", "symbolize/cfi", "symbolize/coderefs", "symbolize/elffile", "symbolize/gccode", "symbolize/hsname", "symbolize/modulecode"},
	"symbolize/evidence/ipe":    {"symbolize/evidence", "symbolize/evidence/symtab", "symbolize/elffile", "symbolize/hsname", "symbolize/sources"},
	"symbolize/evidence/dwarf":  {"symbolize/evidence", "symbolize/coderefs", "symbolize/dwarfindex", "symbolize/elffile", "symbolize/hsname", "symbolize/sources"},
	"symbolize/naming":          {"symbolize/evidence", "symbolize/hsname", "symbolize/hssource", "symbolize/sources"},
	"symbolize/core":            {"symbolize/coredump", "symbolize/dwarfindex", "symbolize/evidence", "symbolize/evidence/dwarf", "symbolize/hsname", "symbolize/naming", "symbolize/sources"},
	"symbolize":                 {"symbolize/binary", "symbolize/core", "symbolize/elffile", "symbolize/evidence", "symbolize/evidence/dwarf", "symbolize/evidence/ipe", "symbolize/evidence/symtab", "symbolize/naming", "symbolize/sources"},
	"symbolize/worker":          {"symbolize", "symbolize/binary", "symbolize/cfi", "symbolize/core", "symbolize/dwarfindex", "symbolize/elffile", "symbolize/evidence/dwarf", "symbolize/sources"},
}

func TestImportsGoOneWay(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Module", "ccagent/...")
	cmd.Stderr = &strings.Builder{}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, cmd.Stderr)
	}
	seen := 0
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
			Module     *struct{ Path string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || p.Module.Path != "ccagent" {
			continue
		}
		if p.ImportPath == "ccagent/bpf/replay/oracle" && slices.Contains(p.Imports, "ccagent/internal/ghc") {
			t.Error("the oracle takes GHC's facts from the package that it is to test: it has facts of its own")
		}
		from := part(p.ImportPath)
		allowed, listed := order[from]
		if !listed {
			if !strings.HasPrefix(from, "internal/") && !strings.HasPrefix(from, "scripts/") {
				t.Errorf("%s is in no known part: add it to docs/ARCHITECTURE.md and here", p.ImportPath)
			}
			continue
		}
		seen++
		siblings, own := inside[strings.TrimPrefix(p.ImportPath, "ccagent/")]
		if _, divided := inside[from]; divided && !own {
			t.Errorf("%s is not known in %s: add it to docs/ARCHITECTURE.md and here", p.ImportPath, from)
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "ccagent/") {
				continue
			}
			to := part(imp)
			if to == from && (!own || slices.Contains(siblings, strings.TrimPrefix(imp, "ccagent/"))) || to != from && slices.Contains(allowed, to) {
				continue
			}
			t.Errorf("%s imports %s, which %s must not", p.ImportPath, imp, from)
		}
	}
	if seen == 0 {
		t.Error("go list named none of our packages")
	}
}

// part returns the part of the module that a package belongs to.
func part(importPath string) string {
	path := strings.TrimPrefix(importPath, "ccagent/")
	segments := strings.SplitN(path, "/", 3)
	if len(segments) > 1 && (segments[0] == "cmd" || segments[0] == "internal" || segments[0] == "scripts") {
		return segments[0] + "/" + segments[1]
	}
	return segments[0]
}
