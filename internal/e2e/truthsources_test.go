package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sourceTexts are the modules of a program, read as text: an oracle's own way from lines to
// bindings.
type sourceTexts struct {
	byFile  map[string]*sourceText // by path in the program's folder
	modules map[string]bool
}

type sourceText struct {
	module   string
	bindings []string // of each line, the top-level binding whose definition it is part of, or ""
}

// readSources reads all modules below a folder.
func readSources(t *testing.T, folder string) *sourceTexts {
	t.Helper()
	s := &sourceTexts{byFile: map[string]*sourceText{}, modules: map[string]bool{}}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isHaskell(path) {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		text := readSource(string(data), filepath.Ext(path) == ".lhs")
		s.byFile[name], s.modules[text.module] = text, true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func isHaskell(file string) bool {
	return filepath.Ext(file) == ".hs" || filepath.Ext(file) == ".lhs"
}

// of gives the text of a file as debug information names it: relative to the program's folder,
// or, of the tests' own programs, in some other folder.
func (s *sourceTexts) of(file string) *sourceText {
	if text := s.byFile[filepath.Clean(file)]; text != nil {
		return text
	}
	return s.byFile[filepath.Base(file)]
}

// has reports whether a module is the program's own.
func (s *sourceTexts) has(module string) bool { return s.modules[module] }

// owns reports whether a row is a binding of the program.
func (s *sourceTexts) owns(row string) bool {
	dot := strings.LastIndex(row, ".")
	return dot > 0 && s.modules[row[:dot]]
}

// binding gives Module.binding of a line, or "".
func (s *sourceText) binding(line int) string {
	if s == nil || line < 1 || line > len(s.bindings) || s.bindings[line-1] == "" {
		return ""
	}
	return s.module + "." + s.bindings[line-1]
}

var (
	moduleHeader = regexp.MustCompile(`^module\s+([A-Z][\w.]*)`)
	definition   = regexp.MustCompile(`^([a-z_][A-Za-z0-9_']*)\b.*[=|]?`)
	keyword      = map[string]bool{"module": true, "import": true, "data": true, "type": true, "newtype": true, "class": true, "instance": true, "infixl": true, "infixr": true, "infix": true, "foreign": true, "deriving": true, "default": true}
)

// readSource splits a module at the lines that begin in the first column. A literate one has
// its code behind "> ".
func readSource(text string, literate bool) *sourceText {
	s := &sourceText{module: "Main"}
	named := false
	now := ""
	for line := range strings.Lines(text) {
		if literate {
			if !strings.HasPrefix(line, ">") {
				s.bindings = append(s.bindings, "")
				continue
			}
			line = strings.TrimPrefix(line[1:], " ")
			if line == "" {
				line = "\n"
			}
		}
		if m := moduleHeader.FindStringSubmatch(line); m != nil && !named {
			s.module, named = m[1], true
		}
		if !strings.ContainsRune(" \n\t\r#}", rune(line[0])) && !strings.HasPrefix(line, "--") {
			now = ""
			if m := definition.FindStringSubmatch(line); m != nil && !keyword[m[1]] {
				now = m[1]
			}
		}
		s.bindings = append(s.bindings, now)
	}
	return s
}
