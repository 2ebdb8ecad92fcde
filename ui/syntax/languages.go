package syntax

import (
	"path"
	"strings"
	"sync"

	"github.com/alecthomas/chroma/v2"
)

// The languages of programs that GHC links. They are defined here, because package lexers of
// chroma reads the definitions of some three hundred languages whenever a process starts, in
// 16 ms, and a capture starts five processes.
var (
	haskell = sync.OnceValue(func() chroma.Lexer { return chroma.MustNewLexer(&chroma.Config{Name: "Haskell"}, haskellRules) })
	c       = sync.OnceValue(func() chroma.Lexer { return braces("C", cWords, cTypes) })
	cpp     = sync.OnceValue(func() chroma.Lexer { return braces("C++", cWords+" "+cppWords, cTypes+" wchar_t char16_t char32_t") })
	rust    = sync.OnceValue(func() chroma.Lexer { return braces("Rust", rustWords, rustTypes) })
)

func lexerFor(name string) chroma.Lexer {
	switch strings.ToLower(path.Ext(name)) {
	case ".hs", ".lhs", ".hs-boot", ".lhs-boot", ".hsc", ".chs", ".x", ".y", ".curry":
		return haskell()
	case ".c", ".h", ".cmm":
		return c()
	case ".cc", ".cpp", ".cxx", ".hpp":
		return cpp()
	case ".rs":
		return rust()
	}
	return nil
}

const (
	haskellWords = "case class data default deriving do else family forall foreign if import in infix infixl infixr " +
		"instance let mdo module newtype of pattern proc rec role then type where"
	cWords = "auto break case const continue default do else enum extern for goto if inline register restrict return " +
		"sizeof static struct switch typedef union volatile while"
	cTypes = "bool char double float int long short signed size_t ssize_t unsigned void int8_t int16_t int32_t int64_t " +
		"uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t"
	cppWords = "alignas alignof catch class concept constexpr const_cast decltype delete dynamic_cast explicit export false " +
		"final friend mutable namespace new noexcept nullptr operator override private protected public reinterpret_cast " +
		"requires static_assert static_cast template this thread_local throw true try typeid typename using virtual"
	rustWords = "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod " +
		"move mut pub ref return self static struct super trait true type union unsafe use where while"
	rustTypes = "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize Self"
)

// Patterns of what several languages share.
const (
	number = `0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?`
	// quoted is a text that may end the file, or its line, without its end.
	quoted = `"(?:[^"\\\n]|\\\s+\\|\\.)*"?`
	char   = `'(?:[^'\\\n]|\\[^\n]?[^'\n]*)'`
)

// words is the pattern of words that are separated by spaces.
func words(list string) string {
	return `\b(?:` + strings.ReplaceAll(list, " ", "|") + `)(?!['\w#])`
}

// nest adds comments that may contain others, or pragmas, to the rules of a language.
func nest(rules chroma.Rules, state, begin, end string, kind chroma.TokenType) chroma.Rules {
	rules["root"] = append([]chroma.Rule{{Pattern: begin, Type: kind, Mutator: chroma.Push(state)}}, rules["root"]...)
	rules[state] = []chroma.Rule{
		{Pattern: begin, Type: kind, Mutator: chroma.Push()},
		{Pattern: end, Type: kind, Mutator: chroma.Pop(1)},
		{Pattern: `[^-{}/*#]+|[\s\S]`, Type: kind},
	}
	return rules
}

// haskellRules follow the lexical structure of the Haskell 2010 report (chapter 2), with GHC's
// magic hash, and the C preprocessor's lines.
func haskellRules() chroma.Rules {
	const symbol = `[!#$%&*+./<=>?@\\^|~:-]`
	rules := chroma.Rules{"root": {
		{Pattern: `\s+`, Type: chroma.Text},
		{Pattern: `^#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|error|warning|line)\b[^\n]*`, Type: chroma.CommentPreproc},
		{Pattern: `--+(?!` + symbol + `)[^\n]*`, Type: chroma.CommentSingle},
		{Pattern: words(haskellWords), Type: chroma.KeywordReserved},
		{Pattern: `[A-Z][\w']*#*`, Type: chroma.KeywordType},
		{Pattern: `[_\p{Ll}][\w']*#*`, Type: chroma.Name},
		{Pattern: quoted, Type: chroma.LiteralString},
		{Pattern: char, Type: chroma.LiteralStringChar},
		{Pattern: number, Type: chroma.LiteralNumber},
		{Pattern: symbol + `+`, Type: chroma.Operator},
		{Pattern: `[\s\S]`, Type: chroma.Text},
	}}
	nest(rules, "comment", `\{-`, `-\}`, chroma.CommentMultiline)
	return nest(rules, "pragma", `\{-#`, `#-\}`, chroma.CommentPreproc)
}

// braces returns the lexer of a language whose comments, literals and operators are C's. Those
// of Rust nest.
func braces(name, keywords, types string) chroma.Lexer {
	return chroma.MustNewLexer(&chroma.Config{Name: name}, func() chroma.Rules {
		rules := chroma.Rules{"root": {
			{Pattern: `^[ \t]*#(?:[^\n\\]|\\[\s\S])*`, Type: chroma.CommentPreproc},
			{Pattern: `\s+`, Type: chroma.Text},
			{Pattern: `//[^\n]*`, Type: chroma.CommentSingle},
			{Pattern: `/\*[\s\S]*?(?:\*/|\z)`, Type: chroma.CommentMultiline},
			{Pattern: words(keywords), Type: chroma.Keyword},
			{Pattern: words(types), Type: chroma.KeywordType},
			{Pattern: `[_\p{L}]\w*`, Type: chroma.Name},
			{Pattern: quoted, Type: chroma.LiteralString},
			{Pattern: char, Type: chroma.LiteralStringChar},
			{Pattern: number, Type: chroma.LiteralNumber},
			{Pattern: `[-!%&*+/:<=>?^|~]+`, Type: chroma.Operator},
			{Pattern: `[\s\S]`, Type: chroma.Text},
		}}
		if name == "Rust" {
			nest(rules, "comment", `/\*`, `\*/`, chroma.CommentMultiline)
		}
		return rules
	})
}
