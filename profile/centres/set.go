package centres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"ccagent/profile"
)

// Set is a choice of cost centres, made after the run. It names code, so it is
// independent of a log and can be used with several.
type Set struct{ Patterns []Pattern }

// Pattern names code to make cost centres of.
type Pattern struct {
	// Name is the name of one centre for everything that the pattern matches. If it
	// is empty, each element becomes a centre with its own name.
	Name string
	// Level is the level that Glob is matched at. Without one, the first level with a
	// match is used: bindings, modules, packages, files, spans.
	Level    profile.Level
	HasLevel bool
	// Glob is matched against names: * matches any text, ? any character, and \
	// quotes the next character. At span level, FILE:LINE, FILE:LINE-LINE and
	// FILE:LINE:COL-LINE:COL name a region of source.
	Glob   string
	Preset Preset // used instead of Glob
}

// Preset is a predefined choice of centres.
type Preset uint8

const (
	NoPreset       Preset = iota
	PresetBindings        // @bindings: every top-level binding of the program's own packages
	PresetModules         // @modules: every module
	PresetPackages        // @packages: every package
	presets
)

var presetNames = [presets]string{"", "@bindings", "@modules", "@packages"}

func (r Preset) String() string { return presetNames[min(r, presets-1)] }

// levelPrefixes are the prefixes that state a pattern's level.
var levelPrefixes = []struct {
	text  string
	level profile.Level
}{{"binding:", profile.LevelBinding}, {"module:", profile.LevelModule}, {"package:", profile.LevelPackage}, {"file:", profile.LevelFile}, {"span:", profile.LevelSpan}}

// ParsePattern parses [NAME=][LEVEL:]GLOB or @PRESET. A pattern that begins with # or @
// is written \# or \@, because # begins a comment in a set file and @ a preset.
func ParsePattern(s string) (Pattern, error) {
	var c Pattern
	text := strings.TrimSpace(s)
	if strings.ContainsFunc(text, unicode.IsControl) {
		return c, fmt.Errorf("cost centre %q has control characters", s)
	}
	escaped := strings.HasPrefix(text, `\#`) || strings.HasPrefix(text, `\@`)
	if escaped { // neither a comment nor a preset
		text = text[1:]
	}
	if strings.HasPrefix(text, "@") && !escaped {
		for r := PresetBindings; r < presets; r++ {
			if text == presetNames[r] {
				c.Preset = r
				return c, nil
			}
		}
		return c, fmt.Errorf("unknown preset %q: choose %s", text, strings.Join(presetNames[1:], ", "))
	}
	if name, rest, ok := cutName(text); ok {
		c.Name, text = strings.TrimSpace(name), strings.TrimSpace(rest)
		if c.Name == "" {
			return c, fmt.Errorf("cost centre %q has no name before the =", s)
		}
	}
	for _, l := range levelPrefixes {
		if rest, ok := strings.CutPrefix(text, l.text); ok {
			c.Level, c.HasLevel, text = l.level, true, rest
			break
		}
	}
	c.Glob = text
	if c.Glob == "" {
		return c, fmt.Errorf("cost centre %q names nothing: give a glob such as Main.load*", s)
	}
	return c, nil
}

// cutName splits NAME=GLOB. Operators may contain =, so a name must be a word.
func cutName(s string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(s, "=")
	if !ok || strings.ContainsAny(name, "*?:.$<>|&!+/\\") || strings.HasPrefix(rest, "=") {
		return "", s, false
	}
	return name, rest, true
}

// String formats a pattern so that ParsePattern reads it back.
func (c Pattern) String() string {
	if c.Preset != NoPreset {
		return c.Preset.String()
	}
	var b strings.Builder
	if c.Name != "" {
		b.WriteString(c.Name + "=")
	}
	if c.HasLevel {
		b.WriteString(c.Level.String() + ":")
	}
	if c.Name != "" && !c.HasLevel && strings.HasPrefix(c.Glob, "=") {
		b.WriteByte(' ') // cutName takes == for part of an operator
	}
	b.WriteString(c.Glob)
	if s := b.String(); strings.HasPrefix(s, "#") || strings.HasPrefix(s, "@") {
		return `\` + s
	}
	return b.String()
}

// setHeader is the first line of a set file, before the version number.
const setHeader = "ccview cost centres"

const setVersion = 1

// maxSet bounds the number of patterns of a set.
const maxSet = 10000

// SetError is the error for a malformed set file.
type SetError struct {
	Line int // 1-based
	Err  error
}

func (e *SetError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *SetError) Unwrap() error { return e.Err }

// Format returns the text of a set file: a header, then one pattern on each line.
func (s Set) Format() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d\n", setHeader, setVersion)
	for _, p := range s.Patterns {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// ParseSet parses a set file. It ignores empty lines and lines that begin with #. Errors
// are *SetError.
func ParseSet(text string) (Set, error) {
	var s Set
	header := false
	for i, line := range strings.Split(text, "\n") {
		fail := func(err error) (Set, error) { return Set{}, &SetError{i + 1, err} }
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !header {
			rest, ok := strings.CutPrefix(line, setHeader+" ")
			if !ok {
				return fail(fmt.Errorf("this is no set of cost centres: the first line is to be %q", fmt.Sprintf("%s %d", setHeader, setVersion)))
			}
			v, err := strconv.Atoi(rest)
			if err != nil || v < 1 {
				return fail(fmt.Errorf("version %q of a set of cost centres", rest))
			}
			if v > setVersion {
				return fail(fmt.Errorf("a set of version %d: this ccview reads up to version %d; save the set again with it, or use a newer ccview", v, setVersion))
			}
			header = true
			continue
		}
		if len(s.Patterns) == maxSet {
			return fail(fmt.Errorf("more than %d patterns", maxSet))
		}
		p, err := ParsePattern(line)
		if err != nil {
			return fail(err)
		}
		s.Patterns = append(s.Patterns, p)
	}
	if !header {
		return s, &SetError{1, errors.New("the file is empty")}
	}
	return s, nil
}

// glob reports whether a pattern with * and ? matches a text. Its worst-case time is
// proportional to the product of their lengths.
func glob(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i+1 < len(p) && p[i] == '\\' && p[i+1] == t[j]:
			i, j = i+2, j+1
		case i < len(p) && p[i] != '\\' && (p[i] == '?' || p[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// wild reports whether a pattern has wildcards.
func wild(pattern string) bool { return strings.ContainsAny(pattern, "*?\\") }
