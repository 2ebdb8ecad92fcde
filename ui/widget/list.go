package widget

// List is a cursor and a window over N rows; it draws only the rows on screen.
type List struct {
	N      int
	Cursor int // 0 ≤ Cursor < N, or 0 when empty
	Top    int // first row on screen
	height int // rows at the last Draw
}

// Move shifts the cursor and stays within the rows.
func (l *List) Move(by int) { l.Set(l.Cursor + by) }

// Set puts the cursor on a row.
func (l *List) Set(i int) { l.Cursor = max(0, min(i, l.N-1)) }

// Scroll shifts the window and takes the cursor along only as far as it must
// to stay visible.
func (l *List) Scroll(by int) {
	l.Top = max(0, min(l.Top+by, l.N-l.height))
	if l.height > 0 {
		l.Cursor = max(l.Top, min(l.Cursor, l.Top+l.height-1))
	}
	l.Set(l.Cursor)
}

// Page is how far a page movement goes.
func (l *List) Page() int { return max(1, l.height-1) }

// Center puts the cursor's row in the middle of the window.
func (l *List) Center() { l.Top = l.Cursor - l.height/2 }

// fit moves the window so that the cursor is in it.
func (l *List) fit(height int) {
	l.height = height
	l.Set(l.Cursor)
	if l.Cursor < l.Top {
		l.Top = l.Cursor
	}
	if l.Cursor >= l.Top+height {
		l.Top = l.Cursor - height + 1
	}
	l.Top = max(0, min(l.Top, l.N-height))
}

// Draw calls row for every visible row with its line on the canvas.
func (l *List) Draw(r Rect, row func(i, y int)) {
	l.fit(max(0, r.Dy()))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		i := l.Top + y - r.Min.Y
		if i >= l.N {
			return
		}
		row(i, y)
	}
}

// RowAt is the row drawn at line y of r, or -1.
func (l *List) RowAt(r Rect, y int) int {
	i := l.Top + y - r.Min.Y
	if y < r.Min.Y || y >= r.Max.Y || i >= l.N {
		return -1
	}
	return i
}

// Find moves to the next (by 1) or previous (by −1) row that matches, around the
// end, or with by 0 to the first at or after the cursor, and then calls moved. It
// reports whether there is one.
func (l *List) Find(by int, match func(i int) bool, moved func()) bool {
	at, step := l.Cursor+by, by
	if by == 0 {
		step = 1
	}
	for range l.N {
		i := ((at % l.N) + l.N) % l.N
		if match(i) {
			l.Set(i)
			moved()
			return true
		}
		at += step
	}
	return false
}
