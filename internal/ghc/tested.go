package ghc

import (
	"maps"
	"slices"
)

// Form is how a program is linked, and what of its symbols is left, as far as it matters for where the run-time system's code and
// names are found.
type Form string

// The forms of programs.
const (
	Linked      Form = "as ghc links"                // Haskell's libraries linked in, C's shared
	Static      Form = "static"                      // no dynamic linker, glibc
	StaticMusl  Form = "static with musl"            //
	StaticPIE   Form = "static-pie"                  // static, and position-independent
	Sections    Form = "-split-sections"             // a section for each procedure; the linker drops what is not used
	Shared      Form = "-dynamic"                    // Haskell's libraries shared
	SharedPIE   Form = "-dynamic -pie"               // and position-independent
	Stripped    Form = "stripped"                    // no symbol table
	DebugFile   Form = "stripped, with a debug file" // which .gnu_debuglink names
	MiniDebug   Form = "stripped, .gnu_debugdata"    // with the symbols of functions in that section
	Embedded    Form = "in a library"                // foreign exports in a shared library that a program in another language loads
	Interpreted Form = "bytecode"                    // what GHCi, runghc and ghc -e interpret
)

// Tested is a kind of program that a test profiles.
type Tested struct {
	Release string // of GHC: "9.6.6"
	Arch    string // GOARCH
	Form    Form
	Ways    []Way  // of the run-time system, as Way.Linked gives them
	Test    string // package and function; the package's other tests may profile more
}

var (
	plain    = []Way{"rts_v"}
	threaded = []Way{"rts_thr"}
	allWays  = []Way{"rts_v", "rts_thr", "rts_p", "rts_thr_p", "rts_thr_debug"}
)

// Names of tests that profile programs of several kinds.
const (
	// TestPrograms builds each program of the table that names it, so that the table cannot say more than is run.
	TestPrograms = "internal/e2e TestProgramsOfTheTable"
	emulated     = "internal/hwtest TestRunTimeSystem"
)

// Programs lists all kinds of programs that tests profile. Of all others the facts were only read: of a release in GHC's sources, of
// an architecture or way in the same.
var Programs = []Tested{
	{"9.0.2", "amd64", Linked, append([]Way{"rts_thr_l"}, allWays...), TestPrograms}, // from 9.4 on every way has the eventlog
	{"9.0.2", "amd64", Static, threaded, TestPrograms},
	{"9.0.2", "amd64", StaticMusl, threaded, TestPrograms},
	{"9.0.2", "amd64", Sections, threaded, TestPrograms},
	{"9.0.2", "amd64", Shared, []Way{"rts_v", "rts_thr"}, TestPrograms},
	{"9.0.2", "amd64", SharedPIE, threaded, TestPrograms},
	{"9.0.2", "amd64", Stripped, threaded, TestPrograms},
	{"9.0.2", "amd64", DebugFile, threaded, TestPrograms},
	{"9.0.2", "amd64", MiniDebug, threaded, TestPrograms},
	{"9.0.2", "amd64", Embedded, plain, "internal/e2e TestHaskellInALibrary"},
	{"9.0.2", "amd64", Interpreted, threaded, "internal/e2e TestBytecode"}, // GHC is dynamic, and its run-time system threaded

	{"9.6.6", "amd64", Linked, threaded, TestPrograms},
	{"9.6.6", "amd64", Static, allWays, TestPrograms},
	{"9.6.6", "amd64", Sections, threaded, TestPrograms},
	{"9.6.6", "amd64", Shared, []Way{"rts_v", "rts_thr"}, TestPrograms},
	{"9.6.6", "amd64", SharedPIE, threaded, TestPrograms},
	{"9.6.6", "amd64", Stripped, threaded, TestPrograms},
	{"9.6.6", "amd64", DebugFile, threaded, TestPrograms},
	{"9.6.6", "amd64", MiniDebug, threaded, TestPrograms},
	{"9.6.6", "arm64", Static, []Way{"rts_v", "rts_thr", "rts_p"}, emulated},
	{"9.6.6", "arm64", StaticPIE, threaded, emulated},
	{"9.6.6", "arm64", Shared, threaded, emulated},

	{"9.10.3", "amd64", Linked, threaded, TestPrograms},
	{"9.10.3", "amd64", Static, allWays, TestPrograms},
	{"9.10.3", "amd64", Sections, threaded, TestPrograms},
	{"9.10.3", "amd64", Shared, []Way{"rts_v", "rts_thr"}, TestPrograms},
	{"9.10.3", "amd64", SharedPIE, threaded, TestPrograms},
	{"9.10.3", "amd64", Stripped, threaded, TestPrograms},
	{"9.10.3", "amd64", DebugFile, threaded, TestPrograms},
	{"9.10.3", "amd64", MiniDebug, threaded, TestPrograms},
}

// Source is the version of GHC's sources in which the facts about a series were read.
type Source struct {
	Series  Version
	Release string // or the day on which the development branch was read
}

// Sources lists all known series, oldest first.
var Sources = []Source{
	{Version{8, 10}, "8.10.7"}, {Version{9, 0}, "9.0.2"}, {Version{9, 2}, "9.2.8"}, {Version{9, 4}, "9.4.8"}, {Version{9, 6}, "9.6.7"},
	{Version{9, 8}, "9.8.4"}, {Version{9, 10}, "9.10.2"}, {Version{9, 12}, "9.12.2"}, {Version{9, 14}, "9.14 branch"},
	{Version{9, 15}, "development, October 2025; to be released as 10.0"},
}

// Fact is how something that ccagent relies on is in the series of which no program was to be had, compared in the sources of Sources
// with the newest series whose programs were run.
type Fact struct {
	What string
	How  string             // what was compared
	New  map[Version]string // what the first series to have it brings; a later series has it too
}

// Facts lists what was compared.
var Facts = []Fact{
	{"threads, stacks, capabilities", "`internal/ghc/testdata/layouts.txt`: a C compiler on the sources", nil},
	{"why threads wait, and what they have done", "`Constants.h`, `TSO.h`", nil},
	{"closure types", "`ClosureTypes.h`, `Closures.h`, `InfoTables.h`, `FunTypes.h`", map[Version]string{
		{9, 14}: "frames that annotate the stack (`ANN_FRAME`, the 66th type)",
	}},
	{"non-moving collector: segments, sizes of cells, events", "`NonMoving.h`, `NonMoving.c`", nil},
	{"I/O managers of programs that are not threaded", "`IOManager.c`, `IOManagerInternals.h`, `Select.c`, `Poll.c`, `PrimOps.cmm`, `Scav.c`", map[Version]string{
		{9, 12}: "the scheduler waits in `awaitCompletedTimeoutsOrIO`, no longer in `awaitEvent`",
		{9, 15}: "with `+RTS --io-manager=poll` a thread that waits for a file or a time refers to a closure (`ASYNCIOOP`, `TIMEOUT_QUEUE`)",
	}},
	{"I/O managers of threaded programs: labels of their threads", "`GHC/Internal/Event/Thread.hs`", nil},
	{"events and their sizes", "`eventlog/testdata/rts/events.txt`: a C compiler on the sources", nil},
	{"bands of heap profiles", "the same; `EventLog.c`, `ProfHeap.c`", map[Version]string{
		{9, 15}: "of `-hi` they are numbers of entries of the info table map, and closures without one are a band",
	}},
	{"info table map", "`IPE.h`, `IPE.c`, `InfoTableProv.hs`", map[Version]string{
		{9, 15}: "entries have numbers, which events refer to; entries and strings stand behind a magic word",
	}},
}

// NewIn lists what a series has that those whose programs were run have not.
func NewIn(v Version) (all []string) {
	for _, f := range Facts {
		for _, from := range slices.SortedFunc(maps.Keys(f.New), func(a, b Version) int {
			if a.Before(b) {
				return -1
			}
			return 1
		}) {
			if !v.Before(from) {
				all = append(all, f.New[from])
			}
		}
	}
	return all
}

// NewestRun gives the newest series whose programs a test profiles.
func NewestRun() (newest Version) {
	for _, p := range Programs {
		if v, err := ParseVersion(p.Release); err == nil && newest.Before(v) {
			newest = v
		}
	}
	return newest
}

// Evidence says what what is known of a program rests on.
type Evidence uint8

const (
	Unknown      Evidence = iota // nothing: the release is not among those whose facts are known
	Read                         // GHC's sources: no program of the series, for this architecture, was ever run
	RunOtherwise                 // a test profiles programs of the series, of other ways or forms
	Run                          // a test profiles programs of the series, of this way and form
)

// EvidenceOf says what the facts about a program rest on, and the release whose programs a test profiles, if any does. form is
// empty where it is not known.
func EvidenceOf(version, arch string, way Way, form Form) (Evidence, string) {
	v, err := ParseVersion(version)
	if err != nil || !v.Known() {
		return Unknown, ""
	}
	found, release := Read, ""
	for _, p := range Programs {
		if of, err := ParseVersion(p.Release); err != nil || of != v || p.Arch != arch {
			continue
		}
		if p.Form == form && slices.Contains(p.Ways, way.Linked()) {
			return Run, p.Release
		}
		found, release = RunOtherwise, p.Release
	}
	return found, release
}
