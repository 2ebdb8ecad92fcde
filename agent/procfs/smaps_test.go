package procfs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const someSmaps = `00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/prog name: x
Size:                328 kB
Rss:                 100 kB
LazyFree:              0 kB
Swap:                  4 kB
VmFlags: rd ex mr mw me dw
4200000000-4203600000 rw-p 00000000 00:00 0 
Rss:               53756 kB
LazyFree:           2048 kB
Rss: many kB
`

func TestParseSmaps(t *testing.T) {
	all, err := parseSmaps(strings.NewReader("Rss: 7 kB\n" + someSmaps))
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	if a := all[0]; a.Resident != 100<<10 || a.Swapped != 4<<10 || a.Path != "/usr/bin/prog name: x" || a.Start != 0x400000 {
		t.Errorf("the first is %+v", a)
	}
	if b := all[1]; b.Resident != 53756<<10 || b.LazyFree != 2<<20 || b.Path != "" {
		t.Errorf("the second is %+v", b)
	}
}

func FuzzParseSmaps(f *testing.F) {
	f.Add([]byte(someSmaps))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, _ := parseSmaps(bytes.NewReader(text))
		for _, u := range all {
			if u.End < u.Start || u.Resident >= 1<<54 {
				t.Errorf("it gives %+v", u)
			}
		}
	})
}

// Of memory that this process maps, the pages that it has written to are in memory, and smaps has the
// same number of bytes.
func TestPagesOfSelf(t *testing.T) {
	page := os.Getpagesize()
	b, err := unix.Mmap(-1, 0, 300*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil { // in a mapping of its own, too
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 63, 64, 65, 128, 299} {
		b[i*page] = 1
	}
	all, err := Smaps(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	start := addressOf(b)
	p, err := ReadPages(os.Getpid(), start, start+uint64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Resident(start, start+uint64(len(b))); n != uint64(7*page) {
		t.Errorf("%d bytes are in memory, want 7 pages", n)
	}
	for _, u := range all {
		if u.Start == start && u.End == start+uint64(len(b)) && u.Resident != uint64(7*page) {
			t.Errorf("smaps has %d bytes", u.Resident)
		}
	}
}

// Resident counts as a walk over all bytes does.
func TestResidentByBytes(t *testing.T) {
	const page, start, pages = 16, 0x100, 200
	random := rand.New(rand.NewPCG(1, 2))
	var entries [start/page + pages]uint64
	for i := range entries {
		if random.IntN(3) > 0 {
			entries[i] = 1 << 63
		}
	}
	text, err := binary.Append(nil, binary.NativeEndian, entries[:])
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPages(bytes.NewReader(text), page, start, start+page*pages)
	if err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		from := uint64(random.IntN(page * (pages + 40)))
		to := uint64(random.IntN(page * (pages + 40)))
		want := uint64(0)
		for at := max(from, start); at < min(to, start+page*pages); at++ {
			want += entries[at/page] >> 63
		}
		if got := p.Resident(from, to); got != want {
			t.Fatalf("from %d to %d: %d bytes, want %d", from, to, got, want)
		}
	}
	if _, err := readPages(bytes.NewReader(text), page, 0, 1<<62); err == nil {
		t.Error("a stretch of any length is read")
	}
	if _, err := readPages(bytes.NewReader(text), page, start, start+page*pages*2); err == nil {
		t.Error("what is not there is read")
	}
}

func addressOf(b []byte) (at uint64) {
	_, _ = fmt.Sscanf(fmt.Sprintf("%p", b), "0x%x", &at)
	return at
}
