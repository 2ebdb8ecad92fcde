package semantics

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Parse reads a program: definitions that end in ";".
//
//	f x y = e ;          a global: f = \x -> \y -> e
//	f(x, y) = e ;        a flat function, called as f(a, b)
//
//	e ::= \x y -> e | let x = e, y = e in e | scc "cc" e
//	    | case e of { C x y -> e ; _ -> e } | fcase …  | e or e | a a … a
//	a ::= x | C | f(e, e) | (e)
//
// Constructors begin with an upper-case letter or a digit; all atoms after a
// constructor are its arguments. Parse binds arguments that are not variables by let.
// A program introduces a logical variable by let x = x. A comment runs from -- to the
// line's end.
func Parse(src string) (p *Program, err error) {
	ps := &parser{toks: tokens(src), prog: &Program{Funs: make(map[string]*Fun)}}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			p, err = nil, fmt.Errorf("parse program: %s", string(bad))
		}
	}()
	for ps.peek() != "" {
		ps.definition()
	}
	return ps.prog, nil
}

type syntaxError string

type parser struct {
	toks  []string
	at    int
	fresh int
	prog  *Program
}

func tokens(src string) []string {
	var out []string
	rs := []rune(src)
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_'", r) }
	for i := 0; i < len(rs); {
		j := i + 1
		switch r := rs[i]; {
		case unicode.IsSpace(r):
			i++
			continue
		case r == '-' && j < len(rs) && rs[j] == '-':
			for i < len(rs) && rs[i] != '\n' {
				i++
			}
			continue
		case word(r):
			for j < len(rs) && word(rs[j]) {
				j++
			}
			// In a call, no blank separates the name from the parenthesis.
			if j < len(rs) && rs[j] == '(' && unicode.IsLower(r) {
				j++
			}
		case r == '"':
			for j < len(rs) && rs[j] != '"' {
				j++
			}
			j = min(j+1, len(rs))
		case r == '-' && j < len(rs) && rs[j] == '>':
			j++
		}
		out = append(out, string(rs[i:j]))
		i = j
	}
	return out
}

func (p *parser) peek() string {
	if p.at < len(p.toks) {
		return p.toks[p.at]
	}
	return ""
}

func (p *parser) next() string {
	t := p.peek()
	p.at++
	return t
}

func (p *parser) fail(format string, args ...any) {
	panic(syntaxError(fmt.Sprintf(format, args...) + " before " + strings.Join(p.toks[min(p.at, len(p.toks)):min(p.at+6, len(p.toks))], " ")))
}

func (p *parser) want(t string) {
	if p.peek() != t {
		p.fail("want %q", t)
	}
	p.at++
}

func (p *parser) accept(t string) bool {
	if p.peek() == t {
		p.at++
		return true
	}
	return false
}

var keywords = []string{"let", "in", "case", "fcase", "of", "scc", "or", "end"}

func isVar(t string) bool {
	return t != "" && (unicode.IsLower(rune(t[0])) || t[0] == '_' && len(t) > 1) && !strings.HasSuffix(t, "(") && !slices.Contains(keywords, t)
}

func isCon(t string) bool {
	return t != "" && (unicode.IsUpper(rune(t[0])) || unicode.IsDigit(rune(t[0])))
}

func (p *parser) name() string {
	if !isVar(p.peek()) {
		p.fail("want a variable")
	}
	return p.next()
}

func (p *parser) names() []string {
	var out []string
	for isVar(p.peek()) {
		out = append(out, p.next())
	}
	return out
}

func (p *parser) definition() {
	if t := p.peek(); strings.HasSuffix(t, "(") {
		p.next()
		f := &Fun{Name: strings.TrimSuffix(t, "(")}
		for !p.accept(")") {
			f.Params = append(f.Params, p.name())
			p.accept(",")
		}
		p.want("=")
		f.Body = p.expr()
		p.prog.Funs[f.Name] = f
	} else {
		name, params := p.name(), p.names()
		p.want("=")
		p.prog.Globals = append(p.prog.Globals, Bind{name, lambdas(params, p.expr())})
	}
	p.want(";")
}

func lambdas(params []string, body Expr) Expr {
	for _, x := range slices.Backward(params) {
		body = &Lam{x, body}
	}
	return body
}

func (p *parser) expr() Expr {
	var e Expr
	switch t := p.peek(); t {
	case "\\":
		p.next()
		params := p.names()
		p.want("->")
		e = lambdas(params, p.expr())
	case "let":
		p.next()
		l := &Let{}
		for {
			name := p.name()
			params := p.names()
			p.want("=")
			l.Binds = append(l.Binds, Bind{name, lambdas(params, p.expr())})
			if !p.accept(",") {
				break
			}
		}
		p.want("in")
		l.Body = p.expr()
		e = l
	case "scc":
		p.next()
		cc := strings.Trim(p.next(), `"`)
		e = &SCC{cc, p.expr()}
	case "case", "fcase":
		p.next()
		c := &Case{Flex: t == "fcase"}
		c.Scrut = p.expr()
		p.want("of")
		p.want("{")
		for !p.accept("}") {
			tag := p.next()
			if !isCon(tag) && tag != "_" {
				p.at--
				p.fail("want a pattern")
			}
			alt := Alt{Tag: tag, Vars: p.names()}
			p.want("->")
			alt.Body = p.expr()
			c.Alts = append(c.Alts, alt)
			if !p.accept(";") {
				p.want("}")
				break
			}
		}
		e = c
	default:
		e = p.application()
	}
	if p.accept("or") {
		e = &Or{e, p.expr()}
	}
	return e
}

// application parses a function or constructor with its arguments. Arguments that are
// not variables are bound by lets around it.
func (p *parser) application() Expr {
	var binds []Bind
	var e Expr
	if t := p.peek(); isCon(t) {
		p.next()
		c := &Con{Tag: t}
		for {
			a := p.atom()
			if a == nil {
				break
			}
			c.Args = append(c.Args, p.variable(a, &binds))
		}
		e = c
	} else {
		e = p.atom()
		if e == nil {
			p.fail("want an expression")
		}
		for {
			a := p.atom()
			if a == nil {
				break
			}
			e = &App{e, p.variable(a, &binds)}
		}
	}
	return wrapLets(binds, e)
}

func wrapLets(binds []Bind, e Expr) Expr {
	for _, b := range slices.Backward(binds) {
		e = &Let{[]Bind{b}, e}
	}
	return e
}

func (p *parser) variable(e Expr, binds *[]Bind) string {
	if v, ok := e.(*Var); ok {
		return v.Name
	}
	p.fresh++
	name := fmt.Sprintf("a%d'", p.fresh)
	*binds = append(*binds, Bind{name, e})
	return name
}

// atom parses an atom. It returns nil if there is none.
func (p *parser) atom() Expr {
	switch t := p.peek(); {
	case t == "(":
		p.next()
		e := p.expr()
		p.want(")")
		return e
	case strings.HasSuffix(t, "(") && t != "(":
		p.next()
		c := &Call{Fun: strings.TrimSuffix(t, "(")}
		var binds []Bind
		for !p.accept(")") {
			c.Args = append(c.Args, p.variable(p.expr(), &binds))
			p.accept(",")
		}
		return wrapLets(binds, c)
	case isVar(t):
		p.next()
		return &Var{t}
	case isCon(t):
		p.next()
		return &Con{Tag: t}
	}
	return nil
}
