package imports

import "strings"

// This file parses the lines of perf script's text by hand, in time linear in their
// length. Regular expressions take ten times as long, on texts that are often gigabytes.

// header is the line before a sample's frames:
//
//	command process[/thread] [cpu] seconds.fraction: period event: frame
//
// The CPU, the period and the frame may be absent; their fields are then empty. The
// command may contain blanks and digits.
type header struct {
	comm, pid, tid, cpu, seconds, fraction, period, event, frame string
}

func parseHeader(text string) (h header, ok bool) {
	if text == "" || blank(text[0]) {
		return h, false
	}
	// The command ends before the first number from which the rest of the header parses.
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

// timed parses the part of a header that begins with the CPU.
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

// parseFrame parses the line of a frame: blanks, an address, and optionally a symbol and
// the file in parentheses.
func parseFrame(text string) (address, symbol string, ok bool) {
	address, rest := cutWord(text)
	if len(text) == 0 || !blank(text[0]) || !hexadecimal(address) {
		return "", "", false
	}
	return address, strings.TrimLeft(rest, blanks), true
}

// parseSource parses the line that -F +srcline adds to a frame: a source file and line.
// If perf does not know them, the line ends with an address in brackets, and parseSource
// returns an empty path.
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

// cutWord skips blanks and returns the first word of a text and the rest.
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
