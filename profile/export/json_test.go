package export

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"ccagent/profile"
)

// strict decodes JSON and refuses fields that the schema does not have.
func strict(t *testing.T, b []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
	if d.More() {
		t.Fatal("more than one document")
	}
}

// speedscopeFile is the schema's File with a sampled profile's fields. Required fields
// are pointers.
type speedscopeFile struct {
	Schema   *string `json:"$schema"`
	Name     string  `json:"name"`
	Exporter string  `json:"exporter"`
	Active   *int    `json:"activeProfileIndex"`
	Shared   *struct {
		Frames []struct {
			Name *string `json:"name"`
			File string  `json:"file"`
			Line uint32  `json:"line"`
			Col  uint32  `json:"col"`
		} `json:"frames"`
	} `json:"shared"`
	Profiles []struct {
		Type    *string  `json:"type"`
		Name    *string  `json:"name"`
		Unit    *string  `json:"unit"`
		Start   *uint64  `json:"startValue"`
		End     *uint64  `json:"endValue"`
		Samples [][]int  `json:"samples"`
		Weights []uint64 `json:"weights"`
	} `json:"profiles"`
}

var speedscopeUnits = []string{"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}

// A speedscope export has only the fields of its schema, with valid frames and weights.
func TestSpeedscopeFollowsItsSchema(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		for _, merged := range []bool{false, true} {
			var f speedscopeFile
			strict(t, write(t, Speedscope, ss, Options{Merged: merged}), &f)
			if f.Schema == nil || *f.Schema != "https://www.speedscope.app/file-format-schema.json" || f.Shared == nil {
				t.Fatal("no schema or no shared frames")
			}
			for _, fr := range f.Shared.Frames {
				if fr.Name == nil || *fr.Name == "" {
					t.Error("a frame without a name")
				}
			}
			want, got := uint64(0), uint64(0)
			for _, s := range ss {
				want += s.Total
			}
			for _, p := range f.Profiles {
				if p.Type == nil || *p.Type != "sampled" || p.Name == nil || p.Unit == nil || !slices.Contains(speedscopeUnits, *p.Unit) {
					t.Fatal("a profile without type, name or unit")
				}
				if len(p.Samples) != len(p.Weights) || len(p.Samples) == 0 {
					t.Fatalf("%d samples, %d weights", len(p.Samples), len(p.Weights))
				}
				sum := uint64(0)
				for i, stack := range p.Samples {
					sum += p.Weights[i]
					for _, fr := range stack {
						if fr < 0 || fr >= len(f.Shared.Frames) {
							t.Fatalf("frame %d of %d", fr, len(f.Shared.Frames))
						}
					}
					if len(stack) == 0 {
						t.Error("a sample without frames")
					}
				}
				if *p.Start != 0 || *p.End != sum {
					t.Errorf("from %d to %d, sum %d", *p.Start, *p.End, sum)
				}
				got += sum
			}
			if got != want {
				t.Errorf("weight %d of %d", got, want)
			}
			if merged && len(f.Profiles) != len(ss) {
				t.Errorf("%d merged profiles of %d events", len(f.Profiles), len(ss))
			}
		}
	})
}

// A speedscope export has a profile for each thread and event, named after the thread, in
// the event's unit.
func TestSpeedscopeThreads(t *testing.T) {
	var f speedscopeFile
	strict(t, write(t, Speedscope, both(load(t, twoEvents()), profile.Filter{}), Options{}), &f)
	var names []string
	for _, p := range f.Profiles {
		names = append(names, *p.Name+" in "+*p.Unit)
	}
	for _, want := range []string{"Haskell thread 1 (main; worker), cycles in nanoseconds", "Haskell thread 2, alloc in bytes", "OS thread 100, alloc in bytes"} {
		if !slices.Contains(names, want) {
			t.Errorf("no %q in %q", want, names)
		}
	}
}

// firefoxTables lists the columns that each table of format 48 must have.
var firefoxTables = map[string][]string{
	"samples":       {"stack", "time", "weight"},
	"markers":       {"data", "name", "startTime", "endTime", "phase", "category"},
	"stackTable":    {"frame", "category", "subcategory", "prefix"},
	"frameTable":    {"address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol", "innerWindowID", "implementation", "line", "column"},
	"funcTable":     {"name", "isJS", "relevantForJS", "resource", "fileName", "lineNumber", "columnNumber"},
	"resourceTable": {"lib", "name", "host", "type"},
	"nativeSymbols": {"libIndex", "address", "name", "functionSize"},
}

// references lists the columns that index another table, with the value for none, null or
// −1, if the format allows one.
var references = []struct{ table, column, of, none string }{
	{"samples", "stack", "stackTable", "null"}, {"stackTable", "frame", "frameTable", ""}, {"stackTable", "prefix", "stackTable", "null"},
	{"stackTable", "category", "categories", ""}, {"frameTable", "category", "categories", "null"}, {"frameTable", "func", "funcTable", ""},
	{"funcTable", "name", "stringArray", ""}, {"funcTable", "fileName", "stringArray", "null"}, {"funcTable", "resource", "resourceTable", "-1"},
	{"resourceTable", "lib", "libs", "null"}, {"resourceTable", "name", "stringArray", ""},
}

// A Firefox export has consistent tables as its processed format requires.
func TestFirefoxFollowsItsFormat(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		var doc struct {
			Meta    map[string]json.RawMessage   `json:"meta"`
			Libs    []map[string]json.RawMessage `json:"libs"`
			Threads []map[string]json.RawMessage `json:"threads"`
		}
		strict(t, write(t, Firefox, ss, Options{}), &doc)
		for key, want := range map[string]string{"version": "29", "preprocessedProfileVersion": "48", "processType": "0", "stackwalk": "1", "markerSchema": "[]", "symbolicated": "true"} {
			if string(doc.Meta[key]) != want {
				t.Errorf("meta.%s is %s, want %s", key, doc.Meta[key], want)
			}
		}
		var categories []struct{ Name, Color string }
		if err := json.Unmarshal(doc.Meta["categories"], &categories); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(categories, func(c struct{ Name, Color string }) bool { return c.Color == "grey" }) {
			t.Error("no grey category: the front-end takes it for the default")
		}
		for _, l := range doc.Libs {
			for _, k := range []string{"arch", "name", "path", "debugName", "debugPath", "breakpadId", "codeId"} {
				if _, ok := l[k]; !ok {
					t.Errorf("a library without %s", k)
				}
			}
		}
		sums := make(map[string]*big.Rat)
		for _, th := range doc.Threads {
			firefoxThreadCheck(t, th, map[string]int{"categories": len(categories), "libs": len(doc.Libs)}, sums)
		}
		for _, s := range ss {
			unit, want := s.EventDef().Unit, new(big.Rat).SetInt(new(big.Int).SetUint64(s.Total))
			kind := map[string]string{"ns": "tracing-ms", "bytes": "bytes"}[unit]
			if unit == "ns" {
				want.Quo(want, big.NewRat(1_000_000, 1))
			}
			if kind == "" {
				kind = "samples"
			}
			if got := sums[kind]; s.Samples > 0 && (got == nil || got.Cmp(want) != 0) {
				t.Errorf("%s: weight %v, want %v", s.EventDef().Name(), got, want)
			}
		}
	})
}

func firefoxThreadCheck(t *testing.T, th map[string]json.RawMessage, sizes map[string]int, sums map[string]*big.Rat) {
	t.Helper()
	for _, k := range []string{"processType", "processStartupTime", "processShutdownTime", "registerTime", "unregisterTime", "pausedRanges", "name", "isMainThread", "tid"} {
		if _, ok := th[k]; !ok {
			t.Fatalf("a thread without %s", k)
		}
	}
	if !strings.HasPrefix(string(th["pid"]), `"`) {
		t.Errorf("pid %s: must be a string from version 46 on", th["pid"])
	}
	var array []string
	if err := json.Unmarshal(th["stringArray"], &array); err != nil {
		t.Fatal(err)
	}
	sizes = maps.Clone(sizes)
	sizes["stringArray"] = len(array)
	tables := make(map[string]map[string]json.RawMessage)
	columns := func(table, column string) (c []json.Number) {
		d := json.NewDecoder(bytes.NewReader(tables[table][column]))
		var raw []json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatalf("%s.%s: %v", table, column, err)
		}
		for _, r := range raw {
			c = append(c, json.Number(r))
		}
		return c
	}
	for table, names := range firefoxTables {
		var tb map[string]json.RawMessage
		if err := json.Unmarshal(th[table], &tb); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
		tables[table] = tb
		var n int
		if err := json.Unmarshal(tb["length"], &n); err != nil {
			t.Fatalf("%s.length: %v", table, err)
		}
		sizes[table] = n
		for _, c := range names {
			if got := len(columns(table, c)); got != n {
				t.Errorf("%s.%s has %d of %d", table, c, got, n)
			}
		}
	}
	for _, r := range references {
		for i, v := range columns(r.table, r.column) {
			if string(v) == r.none && r.none != "" {
				continue
			}
			n, err := v.Int64()
			if err != nil || n < 0 || n >= int64(sizes[r.of]) {
				t.Fatalf("%s.%s[%d] is %s, of %d in %s", r.table, r.column, i, v, sizes[r.of], r.of)
			}
			if r.column == "prefix" && n >= int64(i) {
				t.Errorf("stack %d has prefix %d after it", i, n)
			}
		}
	}
	last := new(big.Rat)
	for _, v := range columns("samples", "time") {
		at, ok := new(big.Rat).SetString(string(v))
		if !ok || at.Cmp(last) < 0 {
			t.Fatalf("time %s after %v", v, last)
		}
		last = at
	}
	var kind string
	if err := json.Unmarshal(tables["samples"]["weightType"], &kind); err != nil {
		t.Fatal(err)
	}
	if sums[kind] == nil {
		sums[kind] = new(big.Rat)
	}
	for _, v := range columns("samples", "weight") {
		w, ok := new(big.Rat).SetString(string(v))
		if !ok {
			t.Fatalf("weight %s", v)
		}
		sums[kind].Add(sums[kind], w)
	}
}
