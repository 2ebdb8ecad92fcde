package dump

import (
	"bytes"
	"os"
	"testing"
	"time"
	"unsafe"

	"ccagent/heap/threads"
)

// Where more is copied that was not known to be needed than there is room for, pages that were known stay out, and are read late.
func TestMomentWithoutRoom(t *testing.T) {
	const known, unknown = 2 * batchPages, leastSpare + batchPages + batchPages/2
	memory := make([]byte, (known+unknown+1)*threads.PageBytes)
	first := (uint64(uintptr(unsafe.Pointer(&memory[0]))) + threads.PageBytes - 1) &^ (threads.PageBytes - 1)
	memory = memory[first-uint64(uintptr(unsafe.Pointer(&memory[0]))):]
	page := func(n int) uint64 { return first + uint64(n)*threads.PageBytes }
	for n := range known + unknown {
		memory[n*threads.PageBytes] = byte(n%251) + 1
	}
	m := moment{live: discover(t, os.Getpid(), os.Args[0]).Memory}
	pages := make([]uint64, known)
	for n := range pages {
		pages[n] = page(n)
	}
	if pages = m.prepare(pages); len(pages) != known {
		t.Fatalf("there is room for %d pages, want %d", len(pages), known)
	}
	m.until = time.Now().Add(time.Hour)
	var b [1]byte
	for n := known - 1; n < known+unknown; n++ { // also one of those that are known
		if _, err := m.ReadAt(b[:], int64(page(n))); err != nil {
			t.Fatal(err)
		}
	}
	m.copy(pages)
	m.until = time.Time{}
	copied := 0
	for n := range known + unknown {
		late := m.late(page(n))
		if !late {
			copied++
		}
		if late && n >= known {
			t.Errorf("page %d was read, and not copied", n)
		}
		want := memory[n*threads.PageBytes]
		memory[n*threads.PageBytes] = 0
		if late {
			want = 0
		}
		if _, err := m.ReadAt(b[:], int64(page(n))); err != nil || !bytes.Equal(b[:], []byte{want}) {
			t.Errorf("page %d is %d, want %d (%v)", n, b[0], want, err)
		}
	}
	if copied != known+leastSpare {
		t.Errorf("%d pages were copied, there is room for %d", copied, known+leastSpare)
	}
	// A process that has more of them does not decide how much memory this one takes.
	if n := len(m.prepare(make([]uint64, 2*mostPages))); n != mostPages || len(m.buf) > 2*mostPages*threads.PageBytes {
		t.Errorf("there is room for %d pages in %d bytes", n, len(m.buf))
	}
}
