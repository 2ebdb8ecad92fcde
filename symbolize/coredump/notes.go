package coredump

import "strings"

// Note is a source note in a binding's text.
type Note struct {
	// Location is as GHC prints it: "src/A.hs:(4,3)-(5,35)".
	Location string
	// The stretch of the text that the note scopes over, without itself.
	Line, Col, EndLine, EndCol uint32
}

// maxOpen bounds how deep notes and brackets are followed into each other.
const maxOpen = 4096

// Notes finds the source notes in a binding's text, at most limit of them, in
// the order of the text.
func Notes(text string, limit int) []Note {
	s := scanner{text: text, line: 1, col: 1, fresh: true, frames: make([]frame, 1)}
	for s.at < len(s.text) && len(s.notes) < limit {
		s.step()
	}
	// What is still open ends where the scan did.
	for len(s.open) > 0 {
		s.pop()
	}
	return s.notes
}

// scanner follows the layout of a text. It knows just enough of Core's lexis to
// show where an expression ends.
type scanner struct {
	text      string
	at        int
	line, col uint32
	fresh     bool // only blanks so far on this line
	// last is the end of the last token: where an expression that ends here does.
	last   [2]uint32
	prev   byte // the byte before, to distinguish primes in names from character literals
	frames []frame
	deeper int // brackets beyond maxOpen
	notes  []Note
	open   []openNote
}

// frame is what is open between two brackets.
type frame struct {
	cases, lets int // without their "of" and "in"
}

type openNote struct {
	index int
	col   uint32 // of the note itself
	depth int    // of brackets
	frame        // as it was
	begun bool   // its expression has
}

func (s *scanner) step() {
	c := s.text[s.at]
	switch {
	case c == '\n':
		s.at++
		s.line, s.col, s.fresh, s.prev = s.line+1, 1, true, c
		return
	case c == ' ' || c == '\t' || c == '\r':
		s.advance(1)
		return
	}
	if s.fresh {
		s.fresh = false
		for len(s.open) > 0 && s.col < s.open[len(s.open)-1].col {
			s.pop()
		}
	}
	rest := s.text[s.at:]
	if strings.HasPrefix(rest, "src<") && !nameByte(s.prev) {
		if i := strings.IndexAny(rest, ">\n"); i > 0 && rest[i] == '>' {
			s.note(rest[4:i], i+1)
			return
		}
	}
	switch c {
	case ')', ']', '}':
		s.closeBracket()
		s.token(1)
		return
	case ';':
		s.end(func(n *openNote) bool { return true })
		f := &s.frames[len(s.frames)-1]
		f.cases, f.lets = 0, 0
		s.token(1)
		return
	case '"':
		s.token(literal(rest, '"'))
		return
	case '\'':
		if !nameByte(s.prev) {
			s.token(character(rest))
			return
		}
	}
	if letter(c) && !nameByte(s.prev) {
		n := 1
		for n < len(rest) && nameByte(rest[n]) {
			n++
		}
		s.word(rest[:n], strings.HasPrefix(rest[n:], " {"))
		s.token(n)
		return
	}
	s.token(1)
	switch c {
	case '(', '[', '{':
		if len(s.frames) < maxOpen {
			s.frames = append(s.frames, frame{})
		} else {
			s.deeper++
		}
	}
}

// word takes account of the words that frame an expression.
func (s *scanner) word(w string, group bool) {
	f := &s.frames[len(s.frames)-1]
	switch w {
	case "case":
		f.cases++
	case "of":
		s.end(func(n *openNote) bool { return n.cases >= f.cases })
		f.cases = max(f.cases-1, 0)
	case "let", "letrec":
		f.lets++
	case "join", "joinrec": // one is a function's name too
		if group {
			f.lets++
		}
	case "in":
		s.end(func(n *openNote) bool { return n.lets >= f.lets })
		f.lets = max(f.lets-1, 0)
	}
}

// end closes the notes of the current brackets for which over holds, innermost
// first, up to the first for which it does not.
func (s *scanner) end(over func(*openNote) bool) {
	for len(s.open) > 0 {
		n := &s.open[len(s.open)-1]
		if n.depth != len(s.frames)+s.deeper || !over(n) {
			return
		}
		s.pop()
	}
}

func (s *scanner) closeBracket() {
	depth := len(s.frames) + s.deeper
	for len(s.open) > 0 && s.open[len(s.open)-1].depth >= depth {
		s.pop()
	}
	switch {
	case s.deeper > 0:
		s.deeper--
	case len(s.frames) > 1:
		s.frames = s.frames[:len(s.frames)-1]
	}
}

// note opens a note whose text has n bytes.
func (s *scanner) note(location string, n int) {
	s.begin()
	o := openNote{index: len(s.notes), col: s.col, depth: len(s.frames) + s.deeper, frame: s.frames[len(s.frames)-1]}
	s.advance(n)
	s.last = [2]uint32{s.line, s.col}
	s.notes = append(s.notes, Note{Location: location, Line: s.line, Col: s.col, EndLine: s.line, EndCol: s.col})
	if len(s.open) < maxOpen {
		s.open = append(s.open, o)
	}
}

// begin takes account of a token: the expressions of the notes right before it
// begin with it.
func (s *scanner) begin() {
	for i := len(s.open) - 1; i >= 0 && !s.open[i].begun; i-- {
		n := &s.notes[s.open[i].index]
		n.Line, n.Col = s.line, s.col
		s.open[i].begun = true
	}
}

func (s *scanner) pop() {
	o := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	if o.begun {
		n := &s.notes[o.index]
		n.EndLine, n.EndCol = s.last[0], s.last[1]
	}
}

// token passes over the n bytes of a token, which holds no line's end unless it
// is damaged.
func (s *scanner) token(n int) {
	s.begin()
	s.advance(n)
	s.last = [2]uint32{s.line, s.col}
}

func (s *scanner) advance(n int) {
	for _, c := range []byte(s.text[s.at : s.at+n]) {
		switch {
		case c == '\n':
			s.line, s.col = s.line+1, 1
		case c&0xc0 != 0x80: // not within a character
			s.col++
		}
		s.prev = c
	}
	s.at += n
}

// nameByte reports whether a byte may be part of a name, besides its first.
func nameByte(c byte) bool {
	return letter(c) || '0' <= c && c <= '9' || c == '_' || c == '\'' || c == '#' || c == '$' || c == '.' || c >= 0x80
}

// literal is the length of a string literal, to the line's end at most.
func literal(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n':
			return i
		case quote:
			return i + 1
		}
	}
	return len(s)
}

// character is the length of a character literal, or 1 for a prime that begins
// none, as in promoted constructors.
func character(s string) int {
	const longest = 12 // '\1114111'
	if n := literal(s[:min(len(s), longest)], '\''); n > 2 && s[n-1] == '\'' && (s[1] == '\\' || len([]rune(s[:n])) == 3) {
		return n
	}
	return 1
}
