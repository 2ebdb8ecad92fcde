package binary

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// ErrNotELF is returned by Identify for files that are no ELF files.
var ErrNotELF = elffile.ErrNotELF

// Info describes an executable or shared library.
type Info struct {
	Arch     string // GOARCH: "amd64"
	PIE      bool   // position-independent: an executable or a library
	Library  bool   // a shared library
	Static   bool   // needs no dynamic linker at all
	BuildID  []byte // GNU build-id; nil if none
	Soname   string
	Needed   []string // shared libraries, by their DT_NEEDED names
	RunPath  []string // where they are looked for first, as written
	DebugLnk string   // .gnu_debuglink: name of a separate debug file
	DebugCRC uint32   // and its checksum

	// GHC is set when GHC's run-time system is linked in or needed, or code
	// compiled by GHC is in the file.
	GHC bool
	// RTS is set when the run-time system's own code is in this file.
	RTS bool
	// DynamicHaskell is set when Haskell libraries are shared ones.
	DynamicHaskell bool
	GHCVersion     string // "9.0.2"; empty if unknown
	Way            ghc.Way

	// Packer is what packed the executable, such as "UPX", whose code is then not to be seen in it.
	Packer string

	HasSymtab bool // .symtab, not only the dynamic linker's symbols
	// HasMiniDebug is set if the symbols of functions are in .gnu_debugdata.
	HasMiniDebug bool
	HasDWARF     bool // .debug_info
	HasNotes     bool // GHC source notes (-g3; before GHC 9.2 also -g2)
	HasIPE       bool // info provenance entries (-finfo-table-map)
}

// Profiled reports whether the program was linked with -prof.
func (b *Info) Profiled() bool { return b.Way.Profiled() }

// Threaded reports whether the program was linked with -threaded.
func (b *Info) Threaded() bool { return b.Way.Threaded() }

// Budgets of Identify, in bytes read. The run-time system's strings lie in a
// few megabytes of read-only data in all but the largest programs.
const (
	scanRodata  = 256 << 20
	scanStrings = 256 << 20
	scanInfo    = 16 << 20
)

// Identify examines an ELF file of size bytes. It reads at most a few hundred
// megabytes, holds about one, and does not parse debug information beyond the
// first source note. The error is ErrNotELF for other files, and an
// *elffile.FormatError for malformed ones.
func Identify(r io.ReaderAt, size int64) (Info, error) {
	f, err := elffile.Open(r, size)
	var unsupported *elffile.UnsupportedError
	if errors.As(err, &unsupported) {
		return Info{}, nil // a 32-bit or big-endian file: no more is known of it
	}
	if err != nil {
		return Info{}, fmt.Errorf("identify binary: %w", err)
	}
	return IdentifyFile(f), nil
}

// IdentifyFile examines a file that is open.
func IdentifyFile(f *elffile.File) Info {
	b := IdentifyProgram(f)
	if b.HasDWARF {
		b.HasNotes = hasNotes(f)
		b.GHC = b.GHC || b.HasNotes
	}
	b.HasIPE = b.GHC && hasIPE(f)
	return b
}

// IdentifyProgram is IdentifyFile without what would have to be looked for in most of the file: whether it has
// source notes and an info table map.
func IdentifyProgram(f *elffile.File) Info {
	d := f.Dynamic()
	b := Info{
		Arch: f.Arch(), PIE: f.Type == elf.ET_DYN, Static: !d.Present || len(d.Needed) == 0 && !hasInterp(f),
		Library: f.Type == elf.ET_DYN && !d.PIE && !hasInterp(f),
		Packer:  f.Packer(), BuildID: f.BuildID(), Soname: d.Soname, Needed: d.Needed, RunPath: d.RunPath,
		HasSymtab: f.HasSymtab(), HasMiniDebug: f.HasMiniDebug(), HasDWARF: f.DebugSection(".debug_info") != nil,
	}
	b.DebugLnk, b.DebugCRC = f.DebugLink()
	b.fromLibraryNames(append([]string{d.Soname}, d.Needed...))
	if v := commentVersion(f); v != "" {
		b.GHC = true
		if b.GHCVersion == "" {
			b.GHCVersion = v
		}
	}
	if version, way, ok := rtsStrings(f, b.GHCVersion); ok {
		b.GHC, b.RTS = true, true
		if version != "" {
			b.GHCVersion = version
		}
		if way != "" {
			b.Way = ghc.Way(way)
		}
	}
	return b
}

func hasInterp(f *elffile.File) bool {
	for _, p := range f.Segments {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}

// fromLibraryNames takes version and way from the names of shared libraries,
// the file's own first.
func (b *Info) fromLibraryNames(names []string) {
	for _, n := range names {
		l, ok := ghc.ParseLibrary(n)
		if !ok {
			continue
		}
		b.GHC, b.DynamicHaskell = true, true
		if b.GHCVersion == "" {
			b.GHCVersion = l.Version
		}
		if b.Way == "" {
			b.Way = l.Way
		}
	}
}

// MayBeHaskell reports whether it is worth while to Identify a file in search of Haskell programs:
// false if the names of its libraries and the compilers in .comment speak against it.
func MayBeHaskell(f *elffile.File) bool {
	var b Info
	d := f.Dynamic()
	b.fromLibraryNames(append([]string{d.Soname}, d.Needed...))
	return b.GHC || f.Section(".comment") == nil || commentVersion(f) != ""
}

// commentVersion is the compiler's version in .comment.
func commentVersion(f *elffile.File) string {
	s := f.Section(".comment")
	if s == nil || s.Size > 1<<20 {
		return ""
	}
	data, err := f.Data(s, 1<<20)
	if err != nil {
		return ""
	}
	return ghc.CommentVersion(data)
}

// markerIn returns the position in the file's span [offset, size], from its begin, of the marker of the run-time system's
// description of itself.
func markerIn(f *elffile.File, span [2]uint64) (marker uint64, found bool) {
	position := uint64(0)
	err := f.Scan(span[0], span[1], scanRodata, longestString, func(chunk []byte) bool {
		i := bytes.Index(chunk, ghc.InfoMarker)
		marker, found = position+uint64(max(i, 0)), i >= 0
		position += uint64(len(chunk) - min(longestString, len(chunk)))
		return !found
	})
	return marker, found && err == nil
}

// rtsStrings looks for the run-time system's own strings in read-only data:
// its project version and way. hint is a version seen elsewhere, believed if
// it is among several candidates.
func rtsStrings(f *elffile.File, hint string) (version, way string, ok bool) {
	var versions []string
	nearest, distance := "", uint64(1)<<63
	for _, span := range rodata(f) {
		// Programs that are not Haskell have none, and are most: looking for versions takes many times as long.
		marker, found := markerIn(f, span)
		if !found {
			continue
		}
		position := uint64(0)
		type candidate struct {
			text string
			at   uint64
		}
		var seen []candidate
		hinted := false
		err := f.Scan(span[0], span[1], scanRodata, longestString, func(chunk []byte) bool {
			if way == "" {
				way = findWay(chunk)
			}
			for _, at := range findVersions(chunk, 64) {
				if len(seen) < 1024 {
					text := string(chunk[at[0]:at[1]])
					seen = append(seen, candidate{text, position + uint64(at[0])})
					hinted = hinted || text == hint
				}
			}
			position += uint64(len(chunk) - min(longestString, len(chunk)))
			return position <= marker || way == "" || !hinted // else nothing more can be learned
		})
		if err != nil {
			way = ""
			continue
		}
		ok = true
		for _, c := range seen {
			versions = append(versions, c.text)
			if d := max(c.at, marker) - min(c.at, marker); d < distance {
				nearest, distance = c.text, d
			}
		}
		break
	}
	if !ok {
		return "", "", false
	}
	for _, v := range versions {
		if v == hint {
			return hint, way, true
		}
	}
	return nearest, way, true
}

// The longest match of each expression, with the zero bytes around it, is shorter than this; so is the marker. Two chunks
// of a scan share as much, so that none is cut.
const longestString = 64

// findWay returns the first match of ghc.WayString. The expression is tried only where the
// match may begin, since trying it at every byte takes a hundred times as long.
func findWay(chunk []byte) string {
	begin := []byte("\x00rts_")
	for at := 0; ; at++ {
		i := bytes.Index(chunk[at:], begin)
		if i < 0 {
			return ""
		}
		at += i
		if m := ghc.WayString.FindSubmatchIndex(chunk[at:min(at+longestString, len(chunk))]); m != nil && m[0] == 0 {
			return string(chunk[at+m[2] : at+m[3]])
		}
	}
}

// findVersions returns where the first limit matches of ghc.VersionString are, which do not
// overlap. The expression is tried only at dots: one stands behind the first number.
func findVersions(chunk []byte, limit int) (found [][2]int) {
	end := 0 // of the last match
	for at := 0; len(found) < limit; at++ {
		i := bytes.IndexByte(chunk[at:], '.')
		if i < 0 {
			break
		}
		at += i
		begin := bytes.LastIndexByte(chunk[max(end, at-3):at], 0)
		if begin < 0 {
			continue
		}
		begin += max(end, at-3)
		m := ghc.VersionString.FindSubmatchIndex(chunk[begin:min(begin+longestString, len(chunk))])
		if m != nil && m[0] == 0 {
			found = append(found, [2]int{begin + m[2], begin + m[3]})
			end = begin + m[1]
			at = end - 1
		}
	}
	return found
}

// rodata lists the file ranges [offset, size] that may hold the run-time
// system's strings: .rodata, or, without section headers, all that is loaded
// and not writable.
func rodata(f *elffile.File) [][2]uint64 {
	if s := f.Section(".rodata"); s != nil {
		return [][2]uint64{{s.Offset, s.Size}}
	}
	var spans [][2]uint64
	for _, p := range f.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_W == 0 && len(spans) < 16 {
			spans = append(spans, [2]uint64{p.Offset, p.Filesz})
		}
	}
	return spans
}

// hasIPE looks for the symbols of info provenance tables, one a module.
func hasIPE(f *elffile.File) bool {
	s := f.Section(".strtab")
	if s == nil {
		return false
	}
	found := false
	suffix := []byte(ghc.ProvenanceSuffix + "\x00")
	_ = f.Scan(s.Offset, s.Size, scanStrings, len(suffix)-1, func(chunk []byte) bool {
		found = bytes.Contains(chunk, suffix)
		return !found
	})
	return found
}
