package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every field that docs/json.md documents is in the command's output.
func TestDocumentedFields(t *testing.T) {
	doc, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	bands, err := filepath.Abs("../../ui/internal/fixture/testdata/bands-hT.eventlog")
	if err != nil {
		t.Fatal(err)
	}
	args := map[string][]string{
		"hot": {"run.eventlog"}, "source": {"run.eventlog", "Physics.step"}, "stacks": {"run.eventlog"}, "ccs": {"run.eventlog"}, "timeline": {"run.eventlog"},
		"info": {"run.eventlog"}, "doctor": {"run.eventlog"}, "diff": {"--all", "run.eventlog", "run.eventlog"}, "gc": {bands}, "heap": {bands}, "alloc": {"blocks.eventlog"}, "ls": {"."},
		"code": {"run.eventlog", "Physics.step"}, "chart": {"run.eventlog"},
	}
	field := regexp.MustCompile("`([a-z][a-z0-9_.\\[\\]]*)`")
	sections := strings.Split(string(doc), "\n## `ccview ")
	if len(sections) != len(args)+1 {
		t.Fatalf("%d commands are documented, %d are tested", len(sections)-1, len(args))
	}
	for _, s := range sections[1:] {
		name, rest, _ := strings.Cut(s, "`")
		have := map[string]bool{}
		logs := [][]string{args[name]}
		if name == "info" || name == "timeline" { // some fields are of what a run-time system reported
			logs = append(logs, []string{bands}, []string{"growing.eventlog"}, []string{"twice.eventlog"})
		}
		if name == "ccs" {
			logs = append(logs, []string{"--costs", "run.eventlog"})
		}
		if name == "heap" {
			logs = append(logs, []string{"growing.eventlog"}, []string{"drawn.eventlog"}, []string{"--level", "span", "divided.eventlog"}, []string{"--allocated", "divided.eventlog"}, []string{"--retained", "--since", "graph.eventlog", "graph.eventlog"}, []string{"--retained", "graph.eventlog"}, []string{"--retained", bands}, []string{"--rss", "graph.eventlog"}, []string{"--rss", bands})
		}
		if name == "source" { // others are of what has no source
			logs = append(logs, []string{"run.eventlog", "(STG)"})
		}
		for _, log := range logs {
			r := ccview(t, append([]string{name, "--format", "json"}, log...)...)
			var v any
			if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, r.stderr)
			}
			fields(v, "", have)
		}
		n := 0
		for _, line := range strings.Split(rest, "\n") {
			cells := strings.Split(line, "|")
			if len(cells) != 4 { // not a row of the table
				continue
			}
			for _, m := range field.FindAllStringSubmatch(cells[1], -1) {
				n++
				if !have[m[1]] {
					t.Errorf("%s prints no %s", name, m[1])
				}
			}
		}
		if n == 0 {
			t.Errorf("%s has no documented fields", name)
		}
	}
}

// Every field that a document of a command can have is in docs/json.md.
func TestFieldsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, code := range regexp.MustCompile("`[^`\n]+`").FindAllString(string(doc), -1) {
		for _, word := range regexp.MustCompile(`[a-z][a-z0-9_]*`).FindAllString(code, -1) {
			documented[word] = true
		}
	}
	tag, n := regexp.MustCompile(`json:"([a-z0-9_]+)`), 0
	for _, dir := range []string{"../../ui/text", "../../ui/printer", "../../ui/screen", "../../cmd/ccview", "../../cmd/ccagent"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, m := range tag.FindAllSubmatch(source, -1) {
				if n++; !documented[string(m[1])] {
					t.Errorf("%s: %s is not in docs/json.md", path, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Error("no field was found")
	}
}

// fields collects the paths of all fields of a document, such as "rows[].share".
func fields(v any, path string, to map[string]bool) {
	to[path] = true
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			fields(x, strings.TrimPrefix(path+"."+k, "."), to)
		}
	case []any:
		for _, x := range v {
			fields(x, path+"[]", to)
		}
	}
}
