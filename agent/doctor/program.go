package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"ccagent/internal/ghc"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// Build lines for what a program lacks.
const (
	fixNotes = `compile with -g3, libraries too:
ghc:   ghc -O2 -g3 Main.hs
cabal: in cabal.project.local
         package *
           ghc-options: -g3
           executable-stripping: False
stack: in stack.yaml
         ghc-options:
           "$everything": -g3`
	fixStripped = `keep the symbol table:
cabal: cabal install --disable-executable-stripping --disable-library-stripping
stack: stack install --no-strip
Debian packages: DEB_BUILD_OPTIONS=nostrip`
)

// Program checks an executable file. remedy gives the lines of build files that
// bring packages their source notes.
func Program(path string, remedy func(packages []string) string) ([]Check, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // waits for no FIFO
	if err != nil {
		return nil, fmt.Errorf("examine program: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("examine program: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("examine program: %s is no regular file", path)
	}
	opened, err := elffile.Open(f, info.Size())
	if errors.Is(err, elffile.ErrNotELF) {
		return []Check{{Name: "program", Status: Failed, Detail: path + " is no ELF program (a script?)",
			Fix: "name the compiled program itself; cabal list-bin prints its path"}}, nil
	}
	if unsupported := (*elffile.UnsupportedError)(nil); errors.As(err, &unsupported) {
		return programChecks(path, &binary.Info{}, ""), nil
	}
	if err != nil {
		return nil, fmt.Errorf("examine program %s: %w", path, err)
	}
	b := binary.IdentifyFile(opened)
	stripped, form := !b.HasSymtab, formOf(&b)
	from, debug := "", addDebugFile(path, &b)
	of, ofDebug := opened, (*elffile.File)(nil)
	if debug != nil {
		defer debug.file.Close()
		from, opened, ofDebug = debug.file.Name(), debug.elf, debug.elf
		if form == ghc.Stripped && b.HasSymtab {
			form = ghc.DebugFile
		}
	}
	checks := programChecks(path, &b, form)
	if b.GHC && b.Packer == "" {
		checks = append(checks, heapCensus(path, of, ofDebug, &b))
	}
	for i := range checks {
		switch c := &checks[i]; {
		case from == "" || c.Status != OK:
		case c.Name == "source notes":
			c.Detail += ", by " + from
		case c.Name == "symbols" && stripped:
			c.Detail = "stripped, but " + from + " has them"
		}
	}
	if b.GHC && b.Arch != "arm64" { // GHC writes no notes there
		checks = append(checks, packages(path, opened, &b, remedy)...)
	}
	return checks, nil
}

// debugFile is a separate file of debug information, open.
type debugFile struct {
	file *os.File
	elf  *elffile.File
}

// addDebugFile adds to what a binary lacks what its separate debug file has, and gives
// that file; nil if there is none.
func addDebugFile(path string, b *binary.Info) *debugFile {
	if b.HasDWARF {
		return nil
	}
	f := binary.OpenDebugFile(nil, path, b)
	if f == nil {
		return nil
	}
	opened, err := openELF(f)
	if err != nil {
		f.Close()
		return nil
	}
	d := binary.IdentifyFile(opened)
	b.HasSymtab = b.HasSymtab || d.HasSymtab
	b.HasDWARF, b.HasNotes = d.HasDWARF, d.HasNotes
	return &debugFile{f, opened}
}

func openELF(f *os.File) (*elffile.File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return elffile.Open(f, info.Size())
}

// formOf gives the form of a program, without what a debug file adds; empty if it is none of those that tests know.
func formOf(b *binary.Info) ghc.Form {
	switch {
	case b.Library:
		return ghc.Embedded
	case b.DynamicHaskell && !b.HasSymtab:
	case b.DynamicHaskell && b.PIE:
		return ghc.SharedPIE
	case b.DynamicHaskell:
		return ghc.Shared
	case b.PIE && b.HasSymtab && b.Static:
		return ghc.StaticPIE
	case b.PIE: // with libraries that are position-independent, which Debian's are not
	case b.HasSymtab && b.Static:
		return ghc.Static
	case b.HasSymtab:
		return ghc.Linked
	case b.HasMiniDebug:
		return ghc.MiniDebug
	default:
		return ghc.Stripped
	}
	return ""
}

func programChecks(path string, b *binary.Info, form ghc.Form) []Check {
	if b.Packer != "" {
		return []Check{{Name: "program", Status: Failed, Detail: fmt.Sprintf("%s is packed by %s: it unpacks its code into memory that belongs to no file, where nothing has a name", path, b.Packer),
			Fix: "profile it unpacked: upx -d " + path}}
	}
	if !b.GHC {
		return []Check{{Name: "program", Status: Failed, Detail: path + " is not a Haskell program compiled by GHC",
			Fix: "only its C code can be sampled; name a program that ghc linked"}}
	}
	return []Check{version(b, form), way(b), symbols(b), notes(b), provenance(b)}
}

func version(b *binary.Info, form ghc.Form) Check {
	c := Check{Name: "GHC", Status: OK, Detail: "GHC " + b.GHCVersion}
	if b.GHCVersion == "" {
		c.Status, c.Detail = Warning, "compiled by GHC, version unknown"
		c.Fix = "its stacks are walked by the newest known layout; if they fail, report the version"
		return c
	}
	switch evidence, release := ghc.EvidenceOf(b.GHCVersion, b.Arch, b.Way, form); evidence {
	case ghc.Unknown:
		c.Status = Warning
		c.Detail += fmt.Sprintf(": not known; it is taken for %v", ghc.Newest)
		c.Fix = "if stacks fail, report the version"
	case ghc.Read:
		c.Detail += ": read from GHC's sources; never run on " + b.Arch
		if v, err := ghc.ParseVersion(b.GHCVersion); err == nil {
			for i, what := range ghc.NewIn(v) {
				c.Detail += [...]string{". New in the sources: ", "; "}[min(i, 1)] + strings.ReplaceAll(what, "`", "")
			}
		}
	case ghc.RunOtherwise:
		c.Detail += fmt.Sprintf(": tests run programs of %s on %s, but none of this way that is linked as this one", release, b.Arch)
	case ghc.Run:
		c.Detail += fmt.Sprintf(": a run-time system as this one was run in tests (%s, %s, %s)", release, b.Arch, form)
	}
	return c
}

func way(b *binary.Info) Check {
	var words []string
	if b.Threaded() {
		words = append(words, "threaded")
	}
	if b.Profiled() {
		words = append(words, "profiling")
	}
	if b.DynamicHaskell {
		words = append(words, "shared Haskell libraries")
	}
	if b.PIE {
		words = append(words, "position-independent")
	}
	detail := string(b.Way)
	if len(words) > 0 {
		detail += " (" + strings.Join(words, ", ") + ")"
	}
	c := Check{Name: "way", Status: OK, Detail: strings.TrimSpace(detail)}
	switch {
	case detail == "":
		c.Detail = "not known"
	case b.Profiled():
		c.Status = Warning
		c.Fix = "-prof changes what GHC optimises; leave it out to see the program as it is shipped"
	}
	return c
}

func symbols(b *binary.Info) Check {
	if b.HasSymtab {
		return Check{Name: "symbols", Status: OK, Detail: "symbol table present"}
	}
	if b.HasMiniDebug {
		return Check{Name: "symbols", Status: OK, Detail: "stripped, but for those of functions in .gnu_debugdata"}
	}
	return Check{Name: "symbols", Status: Warning, Detail: "stripped: Haskell code will be known by module at most, C code will have no names", Fix: fixStripped}
}

func notes(b *binary.Info) Check {
	switch {
	case b.HasNotes:
		return Check{Name: "source notes", Status: OK, Detail: "code is annotated with the source it came from"}
	case b.Arch == "arm64" && b.HasIPE:
		return Check{Name: "source notes", Status: OK, Detail: "none: the info table map is what GHC has for arm64"}
	case b.Arch == "arm64":
		return Check{Name: "source notes", Status: Warning, Detail: "GHC writes none for Haskell on arm64",
			Fix: "compile with -finfo-table-map -fdistinct-constructor-tables (GHC 9.2 or newer)"}
	case b.HasIPE:
		return Check{Name: "source notes", Status: Warning, Detail: "none: the info table map names bindings and places whole closures, not the expressions in them", Fix: fixNotes}
	case b.HasDWARF:
		return Check{Name: "source notes", Status: Warning, Detail: "debug information without source notes (-g or -g2 of GHC 9.2 or newer)", Fix: fixNotes}
	}
	return Check{Name: "source notes", Status: Warning, Detail: "no debug information: names will be those of compiled code", Fix: fixNotes}
}

func provenance(b *binary.Info) Check {
	if b.HasIPE {
		return Check{Name: "info table map", Status: OK, Detail: "present"}
	}
	return Check{Name: "info table map", Status: OK, Detail: "absent; not needed where there are source notes"}
}
