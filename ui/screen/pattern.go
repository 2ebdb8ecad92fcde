package screen

import "regexp"

// Pattern is a regular expression as the user typed it.
type Pattern struct {
	Text   string
	RE     *regexp.Regexp // nil when empty
	Invert bool
}

// Compile reads a pattern: smart case, and with invertible a leading "!" inverts.
func Compile(text string, invertible bool) (Pattern, error) {
	p := Pattern{Text: text}
	body := text
	if invertible && len(body) > 0 && body[0] == '!' {
		p.Invert, body = true, body[1:]
	}
	if body == "" {
		return Pattern{}, nil
	}
	expr := body
	if !hasUpper(body) {
		expr = "(?i)" + body
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		// Report the error of what was typed, without the added (?i).
		if _, plain := regexp.Compile(body); plain != nil {
			err = plain
		}
		return Pattern{}, err
	}
	p.RE = re
	return p, nil
}

func hasUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' { // \W, \S: not letters of the text
			i++
			continue
		}
		if s[i] >= 'A' && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

// Match reports whether s passes; with an empty pattern everything does.
func (p *Pattern) Match(s string) bool {
	return p.RE == nil || p.RE.MatchString(s) != p.Invert
}
