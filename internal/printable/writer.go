package printable

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
)

// Writer writes only printable text: characters other than line ends and tabs become marks
// if not printable, as do bytes that are not UTF-8. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex
	to     io.Writer
	styles bool
	kept   []byte // the beginning of a character or style that is not whole yet
	out    []byte
}

// NewWriter gives a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// AllowStyles lets escape sequences for colours and weight (SGR) pass, and no others.
func (w *Writer) AllowStyles() { w.styles = true }

// Terminal returns the terminal that the Writer writes to, if it is one.
func (w *Writer) Terminal() (*os.File, bool) {
	f, ok := w.to.(*os.File)
	return f, ok && term.IsTerminal(f.Fd())
}

// Data returns the writer for output to other programs, which gets every byte unchanged; on
// a terminal it is the Writer itself.
func (w *Writer) Data() io.Writer {
	if _, ok := w.Terminal(); ok {
		return w
	}
	return w.to
}

func (w *Writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) == 0 && ascii(b) {
		return w.to.Write(b)
	}
	w.out = w.out[:0]
	rest := append(w.kept, b...)
	for len(rest) > 0 {
		if n := style(rest); w.styles && n != 0 {
			if n < 0 {
				break // not whole yet
			}
			w.out = append(w.out, rest[:n]...)
			rest = rest[n:]
			continue
		}
		if !utf8.FullRune(rest) {
			break
		}
		r, n := utf8.DecodeRune(rest)
		if r == utf8.RuneError || r != '\n' && marked(r) != r {
			w.out = utf8.AppendRune(w.out, Mark)
		} else {
			w.out = append(w.out, rest[:n]...)
		}
		rest = rest[n:]
	}
	w.kept = append([]byte(nil), rest...)
	if _, err := w.to.Write(w.out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// maxStyle limits the length of a style.
const maxStyle = 64

// style returns the length of the style at the beginning of b: 0 if there is none, -1 if it
// may be incomplete.
func style(b []byte) int {
	if b[0] != '\x1b' {
		return 0
	}
	if len(b) > 1 && b[1] != '[' {
		return 0
	}
	for i := 2; i < min(len(b), maxStyle); i++ {
		switch c := b[i]; {
		case c == 'm':
			return i + 1
		case c != ';' && c != ':' && (c < '0' || c > '9'):
			return 0
		}
	}
	if len(b) >= maxStyle {
		return 0
	}
	return -1
}
