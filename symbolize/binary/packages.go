package binary

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ccagent/internal/ghc"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/hsname"
)

// Budgets of UnnotedPackages, in bytes.
const (
	scanSymbols   = 256 << 20
	scanAllUnits  = 1 << 30
	maxUnnoted    = 1 << 12
	maxModuleKeys = 1 << 17
)

// UnnotedPackages lists the packages whose code is in an ELF file and has no source
// notes in it, those with the most code first: "text-1.2.5.0",
// or "main" for the program's own modules. It goes by names: in a file without
// symbols there are none.
func UnnotedPackages(f *elffile.File) ([]string, error) {
	names := packageNames{}
	code := map[string]uint64{}
	err := f.EachSymbol(scanSymbols, func(s *elffile.Symbol) {
		if p := names.of(s.Name); p != "" && (len(code) < maxUnnoted || code[p] > 0) {
			code[p] += max(s.Size, 1)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	for p := range notedPackages(f, names) {
		delete(code, p)
	}
	return slices.SortedFunc(maps.Keys(code), func(a, b string) int {
		return cmp.Or(cmp.Compare(code[b], code[a]), cmp.Compare(a, b))
	}), nil
}

func notedPackages(f *elffile.File, names packageNames) map[string]bool {
	noted := map[string]bool{}
	info, abbrev := f.DebugSection(".debug_info"), f.DebugSection(".debug_abbrev")
	if info == nil || abbrev == nil {
		return noted
	}
	table, err := f.Data(abbrev, 8<<20)
	if err != nil {
		return noted
	}
	var units io.ReaderAt
	length := info.Size
	if info.Compressed() {
		data, err := f.Data(info, scanInfo*16)
		if err != nil {
			return noted
		}
		units, length = bytes.NewReader(data), uint64(len(data))
	} else if units, err = f.Reader(info); err != nil {
		return noted
	}
	dwarfindex.NotedUnits(units, length, table, scanAllUnits, func(linkage string) bool {
		p := names.of(linkage)
		if p != "" {
			noted[p] = true
		}
		return p != ""
	})
	return noted
}

// packageNames are packages by what their procedures' names begin with: package
// and module.
type packageNames map[string]string

// of gives the package of a procedure's linkage name, empty for others.
func (m packageNames) of(linkage string) string {
	body, ok := strings.CutSuffix(linkage, "_info")
	if !ok || body == "" || body[0] == '_' || body[0] == '.' {
		return ""
	}
	i := strings.IndexByte(body, '_')
	if i < 0 {
		return ""
	}
	key := body[:i]
	if j := strings.IndexByte(body[i+1:], '_'); j >= 0 {
		key = body[:i+1+j]
	}
	p, known := m[key]
	if !known {
		if n, ok := hsname.Parse(linkage); ok && !n.Internal {
			p = n.Package
		}
		if len(m) < maxModuleKeys {
			m[strings.Clone(key)] = p
		}
	}
	return p
}

// SharedPackages lists the files of the shared Haskell libraries that a program
// names, as far as its own search path leads to them, by their packages.
func (b *Info) SharedPackages(program string) map[string]string {
	files := map[string]string{}
	for _, lib := range b.Needed {
		l, ok := ghc.ParseLibrary(lib)
		if !ok || l.RTS || filepath.Base(lib) != lib {
			continue
		}
		if path := b.lookUp(program, lib); path != "" {
			files[ghc.PackageOf(l.Unit)] = path
		}
	}
	return files
}

// SharedRTS is the shared library that has the run-time system of a program: its name, empty if the program names none, and its
// file, empty if the program's own search path does not lead to it.
func (b *Info) SharedRTS(program string) (lib, path string) {
	for _, lib := range b.Needed {
		if l, ok := ghc.ParseLibrary(lib); ok && l.RTS && filepath.Base(lib) == lib {
			return lib, b.lookUp(program, lib)
		}
	}
	return "", ""
}

// lookUp finds a library in the program's own search path; empty if it is not there.
func (b *Info) lookUp(program, lib string) string {
	for _, dir := range b.RunPath {
		dir = strings.NewReplacer("$ORIGIN", filepath.Dir(program), "${ORIGIN}", filepath.Dir(program)).Replace(dir)
		if path := filepath.Join(dir, lib); filepath.IsAbs(dir) && isFile(path) {
			return path
		}
	}
	return ""
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}
