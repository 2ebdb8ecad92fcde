package hssource

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Decl is a declaration, or consecutive ones of one name: a signature and the
// clauses of its function.
type Decl struct {
	Name string // "rev", "++", "instance Show Shape", "data Shape"
	Line int    // from 1
	Last int    // last line of it
	Col  int    // of its first character, from 1
	// Members are the bindings in an instance's or class's body.
	Members []Decl
}

// Module is what Parse finds.
type Module struct {
	Name  string // of "module X where"; empty if there is none
	Decls []Decl // in order
}

// maxLines bounds what is looked at.
const maxLines = 1 << 20

// Parse reads a module's text. path decides whether it is literate Haskell.
func Parse(text string, path string) Module {
	s := scanner{literate: strings.HasSuffix(path, ".lhs")}
	lines := s.lines(text)
	var m Module
	m.Decls = group(lines, 0, len(lines), topColumn(lines), &m.Name)
	return m
}

// topColumn is the column in which declarations begin: 1, or what literate
// Haskell indents all code by.
func topColumn(lines []line) int {
	col := 1
	for _, l := range lines {
		if l.col == 1 {
			return 1
		}
		if l.col > 0 && (col == 1 || l.col < col) {
			col = l.col
		}
	}
	return col
}

// At finds the binding that contains a line: an instance's method if the line
// is in one. Its name is "show (instance Show Shape)".
func (m *Module) At(lineNo int) (name string, ok bool) {
	d := find(m.Decls, lineNo)
	if d == nil || d.Name == "" {
		return "", false
	}
	if member := find(d.Members, lineNo); member != nil && member.Name != "" {
		return member.Name + " (" + d.Name + ")", true
	}
	if strings.Contains(d.Name, " ") { // no binding: "(data Shape)"
		return "(" + d.Name + ")", true
	}
	return d.Name, true
}

// Extent gives the lines of the binding that contains a line.
func (m *Module) Extent(lineNo int) (first, last int, ok bool) {
	d := find(m.Decls, lineNo)
	if d == nil {
		return 0, 0, false
	}
	if member := find(d.Members, lineNo); member != nil {
		d = member
	}
	return d.Line, d.Last, true
}

// Declares reports whether a top-level function of that name is declared.
func (m *Module) Declares(name string) bool {
	for i := range m.Decls {
		if m.Decls[i].Name == name {
			return true
		}
	}
	return false
}

func find(decls []Decl, lineNo int) *Decl {
	i := sort.Search(len(decls), func(i int) bool { return decls[i].Line > lineNo })
	if i == 0 || lineNo > decls[i-1].Last {
		return nil
	}
	return &decls[i-1]
}

// group gathers lines[from:to] into declarations that begin at column col.
func group(lines []line, from, to, col int, moduleName *string) []Decl {
	var decls []Decl
	type body struct{ from, to int }
	var bodies []body
	for i := from; i < to; {
		if lines[i].col != col {
			i++
			continue
		}
		end := i + 1
		last := i
		for end < to && (lines[end].col == 0 || lines[end].col > col) {
			if lines[end].col != 0 {
				last = end
			}
			end++
		}
		d := Decl{Name: declName(lines[i:last+1], moduleName), Line: i + 1, Last: last + 1, Col: col}
		if n := len(decls); n > 0 && d.Name != "" && decls[n-1].Name == d.Name {
			decls[n-1].Last = d.Last
		} else {
			decls = append(decls, d)
			bodies = append(bodies, body{i + 1, last + 1})
		}
		i = end
	}
	if moduleName == nil {
		return decls
	}
	for i := range decls {
		d := &decls[i]
		if !strings.HasPrefix(d.Name, "instance ") && !strings.HasPrefix(d.Name, "class ") {
			continue
		}
		inner := 0
		for _, l := range lines[bodies[i].from:bodies[i].to] {
			if l.col > col && (inner == 0 || l.col < inner) {
				inner = l.col
			}
		}
		if inner > 0 {
			d.Members = group(lines, bodies[i].from, bodies[i].to, inner, nil)
		}
	}
	return decls
}

// declName names a declaration by its first tokens.
func declName(lines []line, moduleName *string) string {
	t := tokens(lines, 64)
	if len(t) == 0 {
		return ""
	}
	switch t[0] {
	case "module":
		if moduleName != nil && len(t) > 1 {
			*moduleName = t[1]
		}
		return ""
	case "import", "infix", "infixl", "infixr", "default", "where", "then", "else", ")", "]", "}", ",", "deriving":
		if t[0] == "deriving" && len(t) > 1 {
			return header(t)
		}
		return ""
	case "instance", "class":
		return header(t)
	case "data", "newtype", "type":
		return header(t)
	case "foreign":
		for i := 1; i+1 < len(t); i++ {
			if t[i+1] == "::" {
				return t[i]
			}
		}
		return ""
	case "pattern":
		if len(t) > 1 && isUpperName(t[1]) {
			return t[1]
		}
	}
	// A signature, or a binding: up to "=", "|" or "::".
	depth := 0
	infix := ""
	for i, s := range t {
		switch s {
		case "(", "[", "{":
			depth++
			continue
		case ")", "]", "}":
			depth--
			continue
		}
		if depth > 0 {
			continue
		}
		if s == "=" || s == "|" || s == "::" || s == "<-" {
			if s == "::" {
				infix = ""
			}
			break
		}
		if i > 0 && infix == "" {
			switch {
			case len(s) > 2 && s[0] == '`':
				infix = strings.Trim(s, "`")
			case isOperator(s) && s != "@" && s != "~" && s != "!":
				infix = s
			}
		}
	}
	if infix != "" {
		return infix
	}
	if isLowerName(t[0]) {
		return t[0]
	}
	if t[0] == "(" && len(t) > 2 && t[2] == ")" && isOperator(t[1]) {
		return t[1]
	}
	if t[0] == "(" && len(t) > 4 { // (f . g) x = …, (x <+> y) z = …, (a, b) = …
		for i := 1; i < len(t) && t[i] != ")"; i++ {
			if isOperator(t[i]) && t[i] != "@" && t[i] != "~" && t[i] != "!" {
				return t[i]
			}
			if len(t[i]) > 2 && t[i][0] == '`' {
				return strings.Trim(t[i], "`")
			}
		}
	}
	// A pattern binding: name it by its variables.
	var vars []string
	for _, s := range t {
		if s == "=" || s == "|" {
			break
		}
		if isLowerName(s) && len(vars) < 4 {
			vars = append(vars, s)
		}
	}
	return strings.Join(vars, ",")
}

// header joins an instance's, class's or type's tokens up to its body.
func header(t []string) string {
	var b strings.Builder
	for i, s := range t {
		if s == "where" || s == "=" || s == "|" || s == "deriving" && i > 0 || b.Len() > 120 {
			break
		}
		if s == "=>" { // without the context
			b.Reset()
			b.WriteString(t[0])
			continue
		}
		if n := b.Len(); n > 0 && s != ")" && s != "]" && s != "," && !strings.HasSuffix(b.String(), "(") && !strings.HasSuffix(b.String(), "[") {
			b.WriteByte(' ')
		}
		b.WriteString(s)
	}
	name := b.String()
	if t[0] == "data" || t[0] == "newtype" || t[0] == "type" { // without type variables
		if f := strings.Fields(name); len(f) > 1 {
			name = f[0] + " " + f[1]
			if (f[1] == "family" || f[1] == "instance") && len(f) > 2 {
				name += " " + f[2]
			}
		}
	}
	return name
}

func isLowerName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return (unicode.IsLower(r) || r == '_') && s != "_" && !keywords[s]
}

func isUpperName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsUpper(r)
}

var keywords = map[string]bool{
	"case": true, "class": true, "data": true, "default": true, "deriving": true, "do": true, "else": true,
	"foreign": true, "if": true, "import": true, "in": true, "infix": true, "infixl": true, "infixr": true,
	"instance": true, "let": true, "module": true, "newtype": true, "of": true, "then": true, "type": true, "where": true,
}

func isOperator(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return isSymbol(r)
}

func isSymbol(r rune) bool {
	if r < utf8.RuneSelf {
		return strings.ContainsRune("!#$%&*+./<=>?@\\^|-~:", r)
	}
	return unicode.IsSymbol(r) || unicode.IsPunct(r)
}
