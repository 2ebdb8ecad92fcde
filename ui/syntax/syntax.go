// Package syntax finds what to colour in a source file.
//
// chroma's tokens carry no positions, so offsets are accumulated. The Haskell
// lexer does not know literate files, so what is not code is blanked first,
// byte for byte, which keeps all offsets.
package syntax

import (
	"path"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
)

// Kind is what a stretch of source is.
type Kind uint8

// Kinds.
const (
	Text Kind = iota
	Keyword
	Type
	String
	Number
	Comment
	Operator
	Directive
)

// Token begins at byte Start of its line and ends where the next one begins.
type Token struct {
	Start int
	Kind  Kind
}

// MaxSource is the size up to which a file is coloured, in bytes.
const MaxSource = 2 << 20

// Lines splits text into lines without their ends and finds each line's
// tokens. A file in no known language, too large, or that the lexer fails on
// has no tokens.
func Lines(name, text string) (lines []string, tokens [][]Token) {
	lines = split(text)
	tokens = make([][]Token, len(lines))
	lexer := lexerFor(name)
	if lexer == nil || len(text) > MaxSource {
		return lines, tokens
	}
	literate := strings.EqualFold(path.Ext(name), ".lhs")
	code := make([]string, len(lines))
	copy(code, lines)
	if literate {
		unlit(code, tokens)
	}
	lex(lexer, strings.Join(code, "\n"), tokens)
	return lines, tokens
}

// lex adds the tokens of text to its lines. Lexers report an error in the
// middle by panicking; what was found before it stays.
func lex(lexer chroma.Lexer, text string, tokens [][]Token) {
	defer func() { _ = recover() }()
	it, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, replaceInvalid(text))
	if err != nil {
		return
	}
	line, at := 0, 0
	for t := it(); t != chroma.EOF; t = it() {
		kind := kindOf(t.Type)
		rest := t.Value
		for line < len(tokens) {
			piece, tail, more := strings.Cut(rest, "\n")
			if piece != "" {
				add(&tokens[line], at, kind)
				at += len(piece)
			}
			if !more {
				break
			}
			line, at, rest = line+1, 0, tail
		}
	}
}

// replaceInvalid replaces bytes that are not UTF-8 one for one.
func replaceInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	b := []byte(s)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			b[i] = '?'
		}
		i += n
	}
	return string(b)
}

func add(ts *[]Token, at int, k Kind) {
	if n := len(*ts); n > 0 && (*ts)[n-1].Kind == k {
		return
	}
	*ts = append(*ts, Token{at, k})
}

func split(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// unlit blanks what is not code in a literate file and marks it a comment:
// code is between \begin{code} and \end{code} or after ">".
func unlit(code []string, tokens [][]Token) {
	block := false
	for i, l := range code {
		switch {
		case strings.HasPrefix(l, `\begin{code}`):
			block = true
		case strings.HasPrefix(l, `\end{code}`):
			block = false
		case block:
			continue
		case strings.HasPrefix(l, ">"):
			code[i] = " " + l[1:]
			continue
		}
		code[i] = ""
		if l != "" {
			tokens[i] = []Token{{0, Comment}}
		}
	}
}

func kindOf(t chroma.TokenType) Kind {
	switch {
	case t == chroma.CommentPreproc || t == chroma.CommentPreprocFile:
		return Directive
	case t.InCategory(chroma.Comment):
		return Comment
	case t == chroma.KeywordType || t == chroma.NameClass || t == chroma.NameNamespace:
		return Type
	case t == chroma.KeywordPseudo || t == chroma.OperatorWord:
		return Operator
	case t.InCategory(chroma.Keyword):
		return Keyword
	case t.InSubCategory(chroma.LiteralString):
		return String
	case t.InSubCategory(chroma.LiteralNumber):
		return Number
	case t.InCategory(chroma.Operator):
		return Operator
	default:
		return Text
	}
}

// At gives the kind of the byte at offset i of a line.
func At(ts []Token, i int) Kind {
	k := Text
	for _, t := range ts {
		if t.Start > i {
			break
		}
		k = t.Kind
	}
	return k
}
