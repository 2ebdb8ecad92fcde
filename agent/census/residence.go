package census

import (
	"encoding/binary"
	"fmt"
	"time"

	"ccagent/agent/procfs"
	"ccagent/internal/ghc"
)

// Residence is what of a process is in memory: read while the program stood at a census, or in the
// manner Beside as soon as it ran on.
type Residence struct {
	Mappings []procfs.Usage
	Pages    []*procfs.Pages // of the heap's regions
	// Nurseries are the addresses of the descriptors of nurseries' first blocks, from which the
	// others are linked; Blocks says how many each has.
	Nurseries []Nursery
	// StackPointers are those of OS threads that wait.
	StackPointers []uint64
	// Beside is set if it was read when the process ran on.
	Beside bool
}

// Nursery is a list of blocks in which a capability allocates.
type Nursery struct {
	First  uint64 // address of the descriptor
	Blocks uint64
}

// residence reads what is in memory. Of what the process maps itself nothing is read but nurseries'
// heads.
func (r *Reader) residence(d *Descriptors) (*Residence, error) {
	res := &Residence{}
	var err error
	if res.Mappings, err = procfs.Smaps(r.PID); err != nil {
		return nil, fmt.Errorf("see what of process %d is in memory: %w", r.PID, err)
	}
	for _, m := range d.Regions {
		p, err := procfs.ReadPages(r.PID, m.Start, m.End)
		if err != nil {
			return nil, err
		}
		res.Pages = append(res.Pages, p)
	}
	if res.Nurseries, err = r.nurseries(); err != nil {
		return nil, fmt.Errorf("read the nurseries: %w", err)
	}
	res.StackPointers = procfs.StackPointers(r.PID)
	return res, nil
}

// nurseries lists the nurseries: by their array, or without symbols those that capabilities fill.
func (r *Reader) nurseries() (all []Nursery, err error) {
	const size = nurserySize
	read := func(text []byte) {
		all = append(all, Nursery{binary.LittleEndian.Uint64(text[ghc.NurseryFirst:]), binary.LittleEndian.Uint64(text[ghc.NurseryBlocks:])})
	}
	if r.vars.Nurseries != 0 && r.vars.NurseryCount != 0 {
		array, err := r.Memory.Word(r.vars.Nurseries)
		if err != nil {
			return nil, err
		}
		count, err := r.Memory.Word(r.vars.NurseryCount)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size*min(uint64(uint32(count)), maxNurseries))
		if _, err := r.Memory.ReadAt(text, int64(array)); err != nil {
			return nil, err
		}
		for ; len(text) > 0; text = text[size:] {
			read(text)
		}
		return all, nil
	}
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	for _, c := range capabilities {
		at, err := r.Memory.Word(c + ghc.BaseOfCapability + ghc.BaseNursery)
		if err != nil {
			return nil, err
		}
		var text [size]byte
		if _, err := r.Memory.ReadAt(text[:], int64(at)); err != nil {
			return nil, err
		}
		read(text[:])
	}
	return all, nil
}

// nurserySize is that of an entry of the array of nurseries.
const nurserySize = ghc.NurseryBlocks + 8

// residencePause is how long it takes to see what of a megablock is in memory.
const residencePause = 50 * time.Microsecond

// maxNurseries bounds how many nurseries a process may claim to have.
const maxNurseries = 1 << 16
