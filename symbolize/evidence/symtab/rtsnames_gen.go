//go:build ignore

// Command rtsnames_gen lists the C functions and source files of GHC's run-time
// system, from its static libraries, by whether they belong to the garbage
// collector:
//
//	go run rtsnames_gen.go libHSrts.a libHSrts_thr.a … > new && mv new rtsnames.txt
//
// A line is a kind (gc, rts), a visibility (global, hidden, local, file) and a name.
// Lists are merged with what rtsnames.txt has, so one run for each GHC version
// at hand is enough. Of 9.12 to 9.15, of which there was no library, it has the external names of
// archives that gcc made of the sources' C files. Debugging ways are left out: they have copies of inline
// functions in every object file.
package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ccagent/internal/ghc"
)

// collector matches the object files of rts/sm that collect garbage, and the spin locks,
// which the collector alone uses.
var collector = regexp.MustCompile(`^(Evac|Scav|GC|GCAux|GCUtils|Compact|MarkWeak|Sweep|SpinLock|NonMoving\w*)(_thr)?$`)

func main() {
	names := map[string]string{}
	if old, err := os.Open("rtsnames.txt"); err == nil {
		for s := bufio.NewScanner(old); s.Scan(); {
			if f := strings.Fields(s.Text()); len(f) == 3 && f[0] != "#" {
				names[f[1]+" "+f[2]] = f[0]
			}
		}
		old.Close()
	}
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fatal(err)
		}
		if err := archive(data, names); err != nil {
			fatal(fmt.Errorf("%s: %w", path, err))
		}
	}
	var lines []string
	for name, kind := range names {
		lines = append(lines, kind+" "+name)
	}
	slices.Sort(lines)
	fmt.Println("# C functions of GHC's run-time system; made by rtsnames_gen.go.")
	for _, l := range lines {
		fmt.Println(l)
	}
}

func archive(b []byte, names map[string]string) error {
	b, ok := bytes.CutPrefix(b, []byte("!<arch>\n"))
	if !ok {
		return fmt.Errorf("not an archive")
	}
	var long []byte
	for len(b) >= 60 {
		size, err := strconv.Atoi(strings.TrimSpace(string(b[48:58])))
		if err != nil || size > len(b)-60 {
			return fmt.Errorf("malformed member")
		}
		name, data := strings.TrimSpace(string(b[:16])), b[60:60+size]
		b = b[min(len(b), 60+size+size&1):]
		switch {
		case name == "//":
			long = data
			continue
		case name == "/" || name == "/SYM64/":
			continue
		case strings.HasPrefix(name, "/"):
			if at, err := strconv.Atoi(name[1:]); err == nil && at < len(long) {
				name, _, _ = strings.Cut(string(long[at:]), "\n")
			}
		}
		if err := object(strings.TrimRight(name, "/"), data, names); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

var ways = regexp.MustCompile(`\.(\w+_)?o$`)

func object(file string, data []byte, names map[string]string) error {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return err
	}
	symbols, err := f.Symbols()
	if err != nil && err != elf.ErrNoSymbols {
		return err
	}
	base := ways.ReplaceAllString(filepath.Base(file), "")
	kind := "rts"
	if collector.MatchString(base) {
		kind = "gc"
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FILE {
			if strings.HasSuffix(s.Name, ".c") {
				add(names, "file "+s.Name, kind)
			}
			continue
		}
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF || strings.HasPrefix(s.Name, ghc.CmmPrefix) {
			continue
		}
		name, _, _ := strings.Cut(s.Name, ".") // .part.0, .constprop.0, .cold
		if name == "" {
			continue
		}
		visibility := "global "
		if elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			visibility = "local "
		} else if elf.ST_VISIBILITY(s.Other) == elf.STV_HIDDEN {
			visibility = "hidden "
		}
		add(names, visibility+name, kind)
	}
	return nil
}

// add records a name; one that is in both kinds of files is the system's at
// large.
func add(names map[string]string, name, kind string) {
	if old, ok := names[name]; ok && old != kind {
		kind = "rts"
	}
	names[name] = kind
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "rtsnames_gen:", err)
	os.Exit(1)
}
