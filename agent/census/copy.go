package census

import (
	"debug/elf"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"ccagent/agent/process"
	"ccagent/heap"
)

// Copy is a heap as it was copied for a census, in memory that has no name and is on no disk.
type Copy struct {
	File   *os.File
	Groups []Copied
	Stable []uint64 // closures that stable pointers lead to
	// Filling are the starts of blocks that capabilities fill with pinned byte arrays.
	Filling []uint64
	AtRest  bool // garbage was copied too
	// Running are threads that ran Haskell code, if AtRest.
	Running []heap.Running
	// Segments are what is mapped of the process's modules. Of data that the program may have changed
	// the file has a copy.
	Segments []Segment
	// Made are pointers of info tables that are in no module, with the bytes before them, heap.InfoBytes for each.
	Made     []uint64
	MadeText []byte
}

// Copied is a group of blocks, of which Bytes are in the file, from At on.
type Copied struct {
	heap.Group
	At, Bytes uint64
}

// copyMade copies the info tables that no file has.
func (r *Reader) copyMade(c *Copy) {
	r.Tables.EachMade(func(pointer uint64) {
		text := make([]byte, heap.InfoBytes)
		if _, err := r.made.ReadAt(text, int64(pointer-heap.InfoBytes)); err == nil { // else its closures are of no known kind
			c.Made, c.MadeText = append(c.Made, pointer), append(c.MadeText, text...)
		}
	})
}

// make makes the file, and returns its memory.
func (c *Copy) make(size uint64) ([]byte, error) {
	fd, err := unix.MemfdCreate("heap", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	c.File = os.NewFile(uintptr(fd), "copy of the heap")
	if err := c.File.Truncate(int64(size)); err != nil {
		return nil, err
	}
	return unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// Close frees the copy.
func (c *Copy) Close() {
	if c.File != nil {
		c.File.Close() // it is only memory
	}
}

// Bounds of the table of stable pointers: entries of a word.
const maxStable = 1 << 20

// StableKnown reports whether it is known where stable pointers are.
func (r *Reader) StableKnown() bool { return r.vars.Stable != 0 && r.vars.StableSize != 0 }

// stable reads the table of stable pointers, in which free entries lead to each other.
func (r *Reader) stable(c *Copy) error {
	if !r.StableKnown() {
		return nil
	}
	table, err := r.Memory.Word(r.vars.Stable)
	if err != nil {
		return fmt.Errorf("read the stable pointers: %w", err)
	}
	size, err := r.Memory.Word(r.vars.StableSize)
	if err != nil {
		return fmt.Errorf("read the stable pointers: %w", err)
	}
	n := min(uint64(uint32(size)), maxStable)
	if table == 0 || n == 0 {
		return nil // it has none
	}
	all := make([]uint64, n)
	if err := r.Memory.Words(table, all); err != nil {
		return fmt.Errorf("read the stable pointers: %w", err)
	}
	for _, p := range all {
		if p != 0 && (p < table || p >= table+8*n) {
			c.Stable = append(c.Stable, p)
		}
	}
	return nil
}

// Segment is a part of a module as it is mapped: bytes of its file, or data that the program may
// have changed.
type Segment struct {
	Start, Length uint64 // run-time addresses
	Offset        uint64 // in the module's file, or of data in the copy's
	Data          bool
	Module        *process.Module
}

// dataBytes is how many bytes of data segments have.
func dataBytes(all []Segment) (n uint64) {
	for i := range all {
		if all[i].Data {
			n += (all[i].Length + 7) &^ 7
		}
	}
	return n
}

// segmentsOf lists what is mapped of a process's modules.
func segmentsOf(im *process.Image) (all []Segment) {
	seen := map[*process.Module]bool{}
	for _, m := range im.Mappings {
		if seen[m.Module] || m.Module.File == nil {
			continue
		}
		seen[m.Module] = true
		for _, s := range m.Module.Segments {
			if s.Type == elf.PT_LOAD && s.Filesz > 0 {
				all = append(all, Segment{m.Bias + s.Addr, s.Filesz, s.Offset, s.Flags&elf.PF_W != 0, m.Module})
			}
		}
	}
	return all
}
