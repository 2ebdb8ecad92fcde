package doctor

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// packagesShown bounds the packages that a line names.
const packagesShown = 8

// packages returns the libraries whose code is in the program, or in the shared libraries that
// it names, without source notes; none if neither can be found out.
// f is the file with its symbols and notes.
func packages(path string, f *elffile.File, b *binary.Info, remedy func(packages []string) string) []Check {
	shared := b.SharedPackages(path)
	if !b.HasSymtab && len(shared) == 0 {
		return nil
	}
	c := Check{Name: "libraries", Status: OK, Detail: "all have source notes"}
	unnoted, err := binary.UnnotedPackages(f)
	if err != nil {
		return []Check{{Name: c.Name, Status: Warning, Detail: err.Error(), Fix: "build the program anew: its symbols or debug information are damaged"}}
	}
	// The program's own modules are the check's for source notes.
	unnoted = slices.DeleteFunc(unnoted, func(p string) bool { return p == "main" })
	for _, p := range slices.Sorted(maps.Keys(shared)) {
		if has, err := hasNotes(shared[p]); err == nil && !has {
			unnoted = append(unnoted, p)
		}
	}
	if len(unnoted) == 0 {
		return []Check{c}
	}
	shown := unnoted[:min(packagesShown, len(unnoted))]
	c.Detail = "without source notes: " + strings.Join(shown, ", ")
	if n := len(unnoted) - len(shown); n > 0 {
		c.Detail += fmt.Sprintf(" and %d more", n)
	}
	c.Status, c.Fix = Warning, remedy(unnoted)
	return []Check{c}
}

func hasNotes(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	opened, err := openELF(f)
	if err != nil {
		return false, err
	}
	b := binary.IdentifyFile(opened)
	if !b.HasNotes {
		if debug := addDebugFile(path, &b); debug != nil {
			debug.file.Close()
		}
	}
	return b.HasNotes, nil
}
