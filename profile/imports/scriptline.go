package imports

import "strings"

// The lines of perf script's text. They are parsed by hand, in time linear in their
// length: regular expressions take ten times as long on texts that are often gigabytes.

// header is the line before a sample's frames:
//
//	command process[/thread] [cpu] seconds.fraction: period event: frame
//
// of which the CPU, the period and the frame may be absent, and the command may have
// blanks and digits. What is absent is empty.
type header struct {
	comm, pid, tid, cpu, seconds, fraction, period, event, frame string
}

func parseHeader(text string) (h header, ok bool) {
	if text == "" || blank(text[0]) {
		return h, false
	}
	// The command ends before the first numbers that are followed as they should be.
	word, rest := cutWord(text)
	for end := len(word); rest != ""; end = len(text) - len(rest) {
		word, after := cutWord(rest)
		h.pid, h.tid, _ = strings.Cut(word, "/")
		if signed(h.pid) && (len(word) == len(h.pid) || signed(h.tid)) && h.timed(after) {
			h.comm = text[:end]
			return h, true
		}
		rest = after
	}
	return header{}, false
}

// timed parses a header from its CPU on.
func (h *header) timed(text string) bool {
	word, rest := cutWord(text)
	h.cpu = ""
	if n := len(word); n > 2 && word[0] == '[' && word[n-1] == ']' && digits(word[1:n-1]) {
		h.cpu = word[1 : n-1]
		word, rest = cutWord(rest)
	}
	time, colon := strings.CutSuffix(word, ":")
	h.seconds, h.fraction, _ = strings.Cut(time, ".")
	if !colon || !digits(h.seconds) || !digits(h.fraction) {
		return false
	}
	word, rest = cutWord(rest)
	h.period = ""
	if digits(word) {
		h.period = word
		word, rest = cutWord(rest)
	}
	h.event, colon = strings.CutSuffix(word, ":")
	h.frame = strings.TrimLeft(rest, blanks)
	return colon && h.event != "" && h.event[0] != ':'
}

// parseFrame parses the line of a frame: blanks, an address, and maybe a symbol and
// the file in parentheses.
func parseFrame(text string) (address, symbol string, ok bool) {
	address, rest := cutWord(text)
	if len(text) == 0 || !blank(text[0]) || !hexadecimal(address) {
		return "", "", false
	}
	return address, strings.TrimLeft(rest, blanks), true
}

// parseSource parses where a frame's code comes from, after -F +srcline: a file and
// line, or where that is not known, something with an address in brackets, for which
// the path is empty.
func parseSource(text string) (path, line string, ok bool) {
	at := strings.TrimLeft(text, blanks)
	if at == text || at == "" {
		return "", "", false
	}
	if i := strings.LastIndexByte(at, ':'); i > 0 && digits(at[i+1:]) {
		return at[:i], at[i+1:], true
	}
	open := strings.LastIndexByte(at, '[')
	closed := strings.HasSuffix(at, "]")
	return "", "", closed && open > 0 && hexadecimal(at[open+1:len(at)-1])
}

const blanks = " \t\n\f\r"

func blank(c byte) bool { return strings.IndexByte(blanks, c) >= 0 }

// cutWord gives the first word of a text, after its blanks, and what follows the word.
func cutWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, blanks)
	if i := strings.IndexAny(text, blanks); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func signed(s string) bool { return digits(strings.TrimPrefix(s, "-")) }

func hexadecimal(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

func isHeader(text string) bool {
	_, ok := parseHeader(text)
	return ok
}
