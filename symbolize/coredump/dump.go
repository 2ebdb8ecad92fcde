package coredump

import (
	"errors"
	"strings"
)

// Suffix ends the names of the files that -ddump-simpl -ddump-to-file writes.
const Suffix = ".dump-simpl"

// ErrNoCore is returned for a text that is no dump of -ddump-simpl's.
var ErrNoCore = errors.New("no dump of -ddump-simpl")

// Binding is a top-level binding of a dump.
type Binding struct {
	Name string // the binder as printed: "$wgo_r1H6"
	Line int    // of its text's first line, from 1
	Text string // "name = …", without the type and properties that may stand before it
	Rec  bool   // in a group of mutually recursive bindings
}

// Unique is the end of an internal binder's name, which is also its symbol's
// name: "r1H6" of "$wgo_r1H6". Empty if there is none. An exported binder may
// end alike.
func (b *Binding) Unique() string {
	i := strings.LastIndexByte(b.Name, '_')
	if i <= 0 || len(b.Name)-i-1 < 2 || !letter(b.Name[i+1]) {
		return ""
	}
	u := b.Name[i+1:]
	for j := range len(u) {
		if !letter(u[j]) && (u[j] < '0' || u[j] > '9') {
			return ""
		}
	}
	return u
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// title ends the rules of "=" that begin a section of a dump.
const title = " Tidy Core "

// Parse gives the bindings of a dump in their order. Of a dump that holds
// several runs of GHC, those of the last.
func Parse(text string) ([]Binding, error) {
	if !strings.Contains(text, title) {
		return nil, ErrNoCore
	}
	var (
		out     []Binding
		core    bool // in a section with Core
		rec     bool
		open    = -1 // where the current binding's text begins
		line    int
		started int
		name    string
		blank   bool // the line before was
		end     int  // of the last line that is not blank
	)
	flush := func() {
		if open >= 0 && name != "" {
			out = append(out, Binding{Name: name, Line: started, Text: text[open:end], Rec: rec})
		}
		open, name = -1, ""
	}
	for at := 0; at < len(text); {
		line++
		next := len(text)
		if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		l := strings.TrimRight(text[at:next], "\r\n")
		begin := at
		at = next
		switch {
		case strings.TrimSpace(l) == "":
			blank = true
			continue
		case strings.HasPrefix(l, "===================="):
			flush()
			if core = strings.Contains(l, title); core {
				out = out[:0]
			}
			rec = false
		case !core:
		case l[0] == ' ' || l[0] == '\t':
			if open >= 0 {
				end = next
			}
		case strings.HasPrefix(l, "Rec {"):
			flush()
			rec = true
		case strings.HasPrefix(l, "end Rec }"):
			flush()
			rec = false
		case strings.HasPrefix(l, "------ "): // rules for imported functions follow
			flush()
			core = false
		case strings.HasPrefix(l, "-- "):
			flush()
		case strings.HasPrefix(l, "Result size of "):
			flush()
		case l[0] == '[', '0' <= l[0] && l[0] <= '9': // properties; the dump's date
			if open >= 0 {
				end = next
			}
		default:
			// Without -dsuppress-all a binding is preceded by its type and its
			// properties, which hold a copy of it.
			if n := binder(l); blank || n != name {
				flush()
				name = n
			}
			open, started, end = begin, line, next
		}
		blank = false
	}
	flush()
	return out, nil
}

// binder is the name that a line begins with: "<+>" of "<+> :: Int", "f" of
// "f [InlPrag=NOINLINE]".
func binder(l string) string {
	if i := strings.IndexAny(l, " \t"); i >= 0 {
		l = l[:i]
	}
	return l
}
