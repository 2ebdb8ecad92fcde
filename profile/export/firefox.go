package export

import (
	"fmt"
	"io"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// Versions of the formats: of Gecko's own profiles, whose fields the processed profile
// inherits, and of the processed profile.
const (
	geckoVersion     = 29
	processedVersion = 48
)

// firefoxCategories lists the categories of eventlog.Category with the front-end's colours.
var firefoxCategories = [profile.Categories]struct{ name, color string }{
	eventlog.CategoryUnresolved: {"Unresolved", "grey"},
	eventlog.CategoryHaskell:    {"Haskell", "blue"},
	eventlog.CategorySTG:        {"STG machine", "lightblue"},
	eventlog.CategoryGC:         {"GC", "orange"},
	eventlog.CategoryRTS:        {"Run-time system", "yellow"},
	eventlog.CategoryForeign:    {"Foreign", "green"},
	eventlog.CategoryKernel:     {"Kernel", "purple"},
}

// Firefox writes a processed profile with a thread for each pair of event and thread.
// Weights are milliseconds for events in ns, bytes for events in bytes, and counts for
// others.
func Firefox(w io.Writer, ss []*profile.Selection, o Options) error {
	p := ss[0].Profile
	j := newJSONWriter(w)
	j.open("{")
	firefoxMeta(j, ss[0], o)
	libs := firefoxLibs(j, p)
	j.array("threads")
	labels := names(p)
	for _, s := range ss {
		order, samples := byThread(s)
		for i, t := range order {
			name := labels[t]
			if len(ss) > 1 {
				name += ", " + s.EventDef().Name()
			}
			f := &firefoxThread{s: s, libs: libs, name: name, t: t, main: i == 0, samples: samples[t]}
			f.write(j)
		}
	}
	j.close("]")
	j.close("}")
	j.raw("\n")
	return j.flush()
}

func firefoxMeta(j *jsonWriter, s *profile.Selection, o Options) {
	p, c := s.Profile, &s.Profile.Capture
	e := s.EventDef()
	j.key("meta")
	j.open("{")
	j.key("interval")
	step := interval(e)
	if e.Unit != "ns" && p.Duration > 0 && e.Samples > 0 {
		step = p.Duration / e.Samples
	}
	j.millis(max(step, 1))
	j.key("startTime")
	j.millis(c.StartUnixNs)
	j.field("product", programName(p))
	j.field("importedFrom", o.Program)
	j.field("arguments", commandLine(p))
	j.field("processType", 0)
	j.field("stackwalk", 1)
	j.field("version", geckoVersion)
	j.field("preprocessedProfileVersion", processedVersion)
	j.field("symbolicated", true)
	j.field("symbolicationNotSupported", true)
	j.field("oscpu", "Linux "+c.Arch)
	j.field("CPUName", c.CPUModel)
	j.field("logicalCPUs", c.CPUs)
	j.field("usesOnlyOneStackType", true)
	j.field("doesNotUseFrameImplementation", true)
	j.field("sourceCodeIsNotOnSearchfox", true)
	j.field("markerSchema", []any{})
	j.array("categories")
	for _, cat := range firefoxCategories {
		j.value(map[string]any{"name": cat.name, "color": cat.color, "subcategories": []string{"Other"}})
	}
	j.close("]")
	j.close("}")
}

// firefoxLibs writes the libraries and returns their indices by module id of the log.
func firefoxLibs(j *jsonWriter, p *profile.Profile) map[uint32]int {
	index := make(map[uint32]int, len(p.Modules))
	j.array("libs")
	for i := range p.Modules {
		m := &p.Modules[i]
		index[m.ID] = i
		var code *string
		if len(m.BuildID) > 0 {
			id := fmt.Sprintf("%x", m.BuildID)
			code = &id
		}
		j.value(map[string]any{
			"arch": p.Capture.Arch, "name": base(m.Path), "path": m.Path, "debugName": base(m.Path), "debugPath": m.Path,
			"breakpadId": breakpadID(m.BuildID), "codeId": code,
		})
	}
	j.close("]")
	return index
}

// breakpadID formats a build id as Breakpad does: the first 16 bytes as a GUID, whose
// first three parts are little-endian, and an age of 0.
func breakpadID(id []byte) string {
	var g [16]byte
	copy(g[:], id)
	g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
	g[4], g[5], g[6], g[7] = g[5], g[4], g[7], g[6]
	return fmt.Sprintf("%X0", g)
}

// firefoxThread holds the tables of one thread. Frames are frames of call trees; each
// stands for all code of its binding.
type firefoxThread struct {
	s       *profile.Selection
	libs    map[uint32]int
	name    string
	t       thread
	main    bool
	samples []sample

	strings   []string
	stringIDs map[string]int
	frames    *frameIDs
	places    []columns.PlaceID // by frame: an example
	stacks    map[[2]int]int    // (prefix, frame) → stack
	prefix    []int             // by stack; −1 = none
	frame     []int             // by stack
	resources map[uint32]int
	libOf     []uint32 // by resource
}

func (f *firefoxThread) str(s string) int {
	id, ok := f.stringIDs[s]
	if !ok {
		id = len(f.strings)
		f.stringIDs[s] = id
		f.strings = append(f.strings, s)
	}
	return id
}

// stack returns a stack's index in the stack table.
func (f *firefoxThread) stack(frames []stacks.Frame) int {
	at := -1
	for i := len(frames) - 1; i >= 0; i-- {
		n := len(f.frames.frames)
		fr := f.frames.of(frames[i].Frame)
		if fr == n {
			f.places = append(f.places, frames[i].Place)
		}
		k := [2]int{at, fr}
		id, ok := f.stacks[k]
		if !ok {
			id = len(f.prefix)
			f.stacks[k] = id
			f.prefix = append(f.prefix, at)
			f.frame = append(f.frame, fr)
		}
		at = id
	}
	return at
}

func (f *firefoxThread) resource(place columns.PlaceID) int {
	if place == 0 {
		return -1
	}
	module, _, ok := f.s.Profile.Place(place)
	if _, known := f.libs[module]; !ok || !known {
		return -1
	}
	id, ok := f.resources[module]
	if !ok {
		id = len(f.libOf)
		f.resources[module] = id
		f.libOf = append(f.libOf, module)
	}
	return id
}

func (f *firefoxThread) write(j *jsonWriter) {
	f.stringIDs, f.frames = make(map[string]int), newFrameIDs()
	f.stacks, f.resources = make(map[[2]int]int), make(map[uint32]int)
	p := f.s.Profile
	walker := stacks.NewWalker(f.s, false)
	bySite := make(map[columns.SiteID]int)
	for _, smp := range f.samples {
		if _, ok := bySite[smp.site]; !ok {
			bySite[smp.site] = f.stack(stackOf(walker, smp.site))
		}
	}
	j.open("{")
	j.field("processType", "default")
	j.field("processName", programName(p))
	j.field("processStartupTime", 0)
	j.field("processShutdownTime", nil)
	j.key("registerTime")
	j.millis(f.samples[0].time)
	j.field("unregisterTime", nil)
	j.field("pausedRanges", []any{})
	j.field("name", f.name)
	j.field("isMainThread", f.main)
	j.field("pid", fmt.Sprint(f.t.pid))
	if f.t.tso != 0 {
		j.field("tid", fmt.Sprintf("tso %d", f.t.tso))
	} else {
		j.field("tid", f.t.tid)
	}
	f.writeSamples(j, bySite)
	j.key("markers")
	j.raw(`{"data":[],"name":[],"startTime":[],"endTime":[],"phase":[],"category":[],"length":0}`)
	j.comma = true
	f.writeStacks(j)
	f.writeFrames(j)
	f.writeFunctions(j)
	j.key("nativeSymbols")
	j.raw(`{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0}`)
	j.comma = true
	j.field("stringArray", f.strings)
	j.close("}")
}

func (f *firefoxThread) writeSamples(j *jsonWriter, bySite map[columns.SiteID]int) {
	j.key("samples")
	j.open("{")
	j.array("stack")
	for _, smp := range f.samples {
		j.int(int64(bySite[smp.site]))
	}
	j.close("]")
	j.array("time")
	for _, smp := range f.samples {
		j.millis(smp.time)
	}
	j.close("]")
	j.array("weight")
	unit := f.s.EventDef().Unit
	for _, smp := range f.samples {
		if unit == "ns" {
			j.millis(smp.weight)
		} else {
			j.uint(smp.weight)
		}
	}
	j.close("]")
	kind := "samples"
	switch unit {
	case "ns":
		kind = "tracing-ms"
	case "bytes":
		kind = "bytes"
	}
	j.field("weightType", kind)
	j.field("length", len(f.samples))
	j.close("}")
}

// column writes one column of a table.
func column[T any](j *jsonWriter, name string, n int, at func(i int) T) {
	j.array(name)
	for i := range n {
		j.value(at(i))
	}
	j.close("]")
}

func (f *firefoxThread) category(frame int) int {
	return int(min(f.frames.frames[frame].Category, eventlog.CategoryKernel))
}

func (f *firefoxThread) writeStacks(j *jsonWriter) {
	n := len(f.prefix)
	j.key("stackTable")
	j.open("{")
	column(j, "frame", n, func(i int) int { return f.frame[i] })
	column(j, "category", n, func(i int) int { return f.category(f.frame[i]) })
	column(j, "subcategory", n, func(int) int { return 0 })
	column(j, "prefix", n, func(i int) *int {
		if f.prefix[i] < 0 {
			return nil
		}
		return &f.prefix[i]
	})
	j.field("length", n)
	j.close("}")
}

func (f *firefoxThread) writeFrames(j *jsonWriter) {
	fr := f.frames.frames
	n := len(fr)
	null := func(int) any { return nil }
	j.key("frameTable")
	j.open("{")
	column(j, "address", n, func(int) int { return -1 })
	column(j, "inlineDepth", n, func(int) int { return 0 })
	column(j, "category", n, f.category)
	column(j, "subcategory", n, func(int) int { return 0 })
	column(j, "func", n, func(i int) int { return i })
	column(j, "nativeSymbol", n, null)
	column(j, "innerWindowID", n, func(int) int { return 0 })
	column(j, "implementation", n, null)
	column(j, "line", n, func(i int) *uint32 { return known(&fr[i].Line) })
	column(j, "column", n, null)
	j.field("length", n)
	j.close("}")
}

func (f *firefoxThread) writeFunctions(j *jsonWriter) {
	fr := f.frames.frames
	n := len(fr)
	no := func(int) bool { return false }
	j.key("funcTable")
	j.open("{")
	column(j, "name", n, func(i int) int { return f.str(fr[i].Name) })
	column(j, "isJS", n, no)
	column(j, "relevantForJS", n, no)
	column(j, "resource", n, func(i int) int { return f.resource(f.places[i]) })
	column(j, "fileName", n, func(i int) *int {
		if fr[i].File == "" {
			return nil
		}
		id := f.str(fr[i].File)
		return &id
	})
	column(j, "lineNumber", n, func(i int) *uint32 { return known(&fr[i].Line) })
	column(j, "columnNumber", n, func(int) any { return nil })
	j.field("length", n)
	j.close("}")

	j.key("resourceTable")
	j.open("{")
	m := len(f.libOf)
	column(j, "lib", m, func(i int) int { return f.libs[f.libOf[i]] })
	column(j, "name", m, func(i int) int { return f.str(base(f.s.Profile.Modules[f.libs[f.libOf[i]]].Path)) })
	column(j, "host", m, func(int) any { return nil })
	column(j, "type", m, func(int) int { return 1 })
	j.field("length", m)
	j.close("}")
}

func known(line *uint32) *uint32 {
	if *line == 0 {
		return nil
	}
	return line
}
