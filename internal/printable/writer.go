package printable

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
)

// Writer passes text on in which everything is printable: other characters than line
// ends and tabs become marks, as do bytes that are no UTF-8. It may be used by several
// goroutines.
type Writer struct {
	mu     sync.Mutex
	to     io.Writer
	styles bool
	kept   []byte // the beginning of a character or style that is not whole yet
	out    []byte
}

// NewWriter gives a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// AllowStyles lets the sequences pass that choose colours and weight (SGR), but no other.
func (w *Writer) AllowStyles() { w.styles = true }

// Terminal gives the terminal that the Writer writes to, if it does.
func (w *Writer) Terminal() (*os.File, bool) {
	f, ok := w.to.(*os.File)
	return f, ok && term.IsTerminal(f.Fd())
}

// Data gives where to write what is meant for other programs, byte by byte as it is;
// on a terminal that is the Writer itself.
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

// maxStyle bounds a style's length.
const maxStyle = 64

// style gives the length of the style that b begins with: 0 if there is none, -1 if there
// may be one that is not whole.
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
