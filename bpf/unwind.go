package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"ccagent/internal/fair"
)

const (
	// UnwindRowSize is the size of an encoded row.
	UnwindRowSize = 8
	// MaxRegions limits the mappings of a process that can be unwound.
	MaxRegions = 64
)

// ErrTableFull is returned if call frame information does not fit into Config.UnwindRows.
var ErrTableFull = errors.New("no room for more call frame information")

// Table is a reference to a module's call frame information in the walker's maps.
type Table struct {
	firstRow, firstRule, firstBucket, buckets uint32
	user                                      uint32 // whose programs have the module
}

// Region is a mapping of a module that has call frame information.
type Region struct {
	Start, End uint64 // run-time addresses
	Base       uint64 // run-time address that the table's rows count from
	Table      Table
}

// sharedArray is an array map in shared memory that is filled from the front.
type sharedArray struct {
	memory      *ebpf.Memory
	element     int
	used, limit uint32
}

func newSharedArray(m *ebpf.Map) (sharedArray, error) {
	memory, err := m.Memory()
	if err != nil {
		return sharedArray{}, fmt.Errorf("map call frame information: %w", err)
	}
	return sharedArray{memory: memory, element: int(m.ValueSize()), limit: m.MaxEntries()}, nil
}

func (a *sharedArray) fits(b []byte) bool { return len(b)/a.element <= int(a.limit-a.used) }

// add stores whole elements and returns the index of the first. They must fit.
func (a *sharedArray) add(b []byte) (first uint32, err error) {
	first = a.used
	if len(b) == 0 {
		return first, nil
	}
	if _, err := a.memory.WriteAt(b, int64(first)*int64(a.element)); err != nil {
		return 0, fmt.Errorf("store call frame information: %w", err)
	}
	a.used += uint32(len(b) / a.element)
	return first, nil
}

// chunkedArray is a sharedArray whose memory is made in chunks, by need, up to limit elements.
type chunkedArray struct {
	outer       *ebpf.Map
	spec        *ebpf.MapSpec // of a chunk
	chunks      []*ebpf.Memory
	used, limit uint32
}

// chunksOf is how many chunks so many elements take.
func chunksOf(elements uint32) uint32 { return (elements + chunkElements - 1) / chunkElements }

func (a *chunkedArray) fits(b []byte) bool { return len(b)/elementSize <= int(a.limit-a.used) }

// add stores whole elements and returns the index of the first. They must fit.
func (a *chunkedArray) add(b []byte) (first uint32, err error) {
	first = a.used
	for chunksOf(first+uint32(len(b)/elementSize)) > uint32(len(a.chunks)) {
		if err := a.grow(); err != nil {
			return 0, err
		}
	}
	if err := a.write(b, first); err != nil {
		return 0, err
	}
	a.used += uint32(len(b) / elementSize)
	return first, nil
}

// grow makes another chunk. The walker holds the map, and the memory stays mapped here.
func (a *chunkedArray) grow() error {
	chunk, err := ebpf.NewMap(a.spec)
	if err != nil {
		return fmt.Errorf("make room for call frame information: %w", err)
	}
	defer chunk.Close()
	memory, err := chunk.Memory()
	if err != nil {
		return fmt.Errorf("map call frame information: %w", err)
	}
	if err := a.outer.Put(uint32(len(a.chunks)), chunk); err != nil {
		return fmt.Errorf("make room for call frame information: %w", err)
	}
	a.chunks = append(a.chunks, memory)
	return nil
}

// write overwrites elements from an index on, whose chunks are there.
func (a *chunkedArray) write(b []byte, index uint32) error {
	for len(b) > 0 {
		within := index % chunkElements
		n := min(uint32(len(b)/elementSize), chunkElements-within)
		if _, err := a.chunks[index/chunkElements].WriteAt(b[:n*elementSize], int64(within)*elementSize); err != nil {
			return fmt.Errorf("store call frame information: %w", err)
		}
		b, index = b[n*elementSize:], index+n
	}
	return nil
}

// unwindTables are the maps that hold call frame information.
type unwindTables struct {
	rules         sharedArray
	rows, buckets chunkedArray
	// of each, what users have; nil where there is one user.
	ofRules, ofRows, ofBuckets *fair.Shares
}

// divide has the programs of one user have at most half of the room.
func (t *unwindTables) divide() {
	t.ofRules, t.ofRows, t.ofBuckets = fair.Of(int(t.rules.limit)), fair.Of(int(t.rows.limit)), fair.Of(int(t.buckets.limit))
}

// room reports whether encoded rows, rules and buckets of a user fit, and takes the room for them.
func (t *unwindTables) room(user uint32, rows, rules, buckets []byte) error {
	if !t.rows.fits(rows) || !t.rules.fits(rules) || !t.buckets.fits(buckets) {
		return ErrTableFull
	}
	if t.ofRows == nil {
		return nil
	}
	taken := []struct {
		of *fair.Shares
		n  int
	}{{t.ofRows, len(rows) / elementSize}, {t.ofRules, len(rules) / t.rules.element}, {t.ofBuckets, len(buckets) / bucketSize}}
	for i, take := range taken {
		if err := take.of.Take(user, take.n); err != nil {
			for _, back := range taken[:i] {
				back.of.Give(user, back.n)
			}
			return fmt.Errorf("%w: %w", ErrTableFull, err)
		}
	}
	return nil
}

// newUnwindTables has room for so many rows and buckets.
func newUnwindTables(maps *samplerMaps, spec *ebpf.CollectionSpec, rows, buckets uint32) (*unwindTables, error) {
	rules, err := newSharedArray(maps.UnwindRules)
	return &unwindTables{
		rules:   rules,
		rows:    chunkedArray{outer: maps.UnwindRows, spec: spec.Maps[samplerMapUnwindRows].InnerMap, limit: rows},
		buckets: chunkedArray{outer: maps.UnwindBuckets, spec: spec.Maps[samplerMapUnwindBuckets].InnerMap, limit: buckets},
	}, err
}

// Values of UNWIND_BUCKET_SHIFT, UNWIND_CHUNK_SHIFT, and the sizes of struct unwind_row and struct unwind_bucket in record.h.
const (
	bucketShift   = 8
	chunkElements = 1 << 17
	bucketSize    = 8
	elementSize   = UnwindRowSize
)

// Buckets builds the index by address of encoded rows.
func Buckets(rows []byte) []byte {
	n := len(rows) / UnwindRowSize
	if n == 0 {
		return nil
	}
	last := binary.NativeEndian.Uint32(rows[(n-1)*UnwindRowSize:])
	return bucketsOf(rows, 0, uint64(last)>>bucketShift+1, 0)
}

// bucketsOf builds the index of so many buckets from the one at an address, which the first row
// does not lie after. The first row has that index.
func bucketsOf(rows []byte, from uint32, count uint64, index uint32) []byte {
	n := len(rows) / UnwindRowSize
	addr := func(i int) uint32 { return binary.NativeEndian.Uint32(rows[i*UnwindRowSize:]) }
	buckets := make([]byte, 0, count*bucketSize)
	first, last := 0, 0
	for b := range count {
		b += uint64(from) >> bucketShift
		for first = last; first+1 < n && uint64(addr(first+1)) <= b<<bucketShift; {
			first++
		}
		for last = first; last+1 < n && uint64(addr(last+1)) < (b+1)<<bucketShift; {
			last++
		}
		buckets = binary.NativeEndian.AppendUint32(buckets, index+uint32(first))
		buckets = binary.NativeEndian.AppendUint32(buckets, index+uint32(last))
	}
	return buckets
}

// AddTable stores the sorted rows and the rules of a module of a user's programs, both encoded as in record.h. It
// returns ErrTableFull if there is no room.
func (s *Sampler) AddTable(user uint32, rows, rules []byte) (Table, error) {
	t := s.unwind
	buckets := Buckets(rows)
	if err := t.room(user, rows, rules, buckets); err != nil {
		return Table{}, err
	}
	table := Table{user: user}
	var errs [3]error
	table.firstRow, errs[0] = t.rows.add(rows)
	table.firstRule, errs[1] = t.rules.add(rules)
	table.firstBucket, errs[2] = t.buckets.add(buckets)
	table.buckets = uint32(len(buckets) / bucketSize)
	return table, errors.Join(errs[:]...)
}

// AddRows stores the rows of a part of a table's code: of size bytes from an address, both
// multiples of 256 and counted from the table's base. The rows are sorted, the first is at that
// address. They take the place of what the table has there; SetRegions makes the walker look rules
// up again. It returns ErrTableFull if there is no room.
func (s *Sampler) AddRows(table Table, rows []byte, addr, size uint32) error {
	t := s.unwind
	bucket := addr >> bucketShift
	if len(rows) == 0 || bucket >= table.buckets {
		return nil
	}
	if err := t.room(table.user, rows, nil, nil); err != nil {
		return err
	}
	first, err := t.rows.add(rows)
	if err != nil {
		return err
	}
	count := min(size>>bucketShift, table.buckets-bucket)
	buckets := bucketsOf(rows, addr, uint64(count), first-table.firstRow)
	return t.buckets.write(buckets, table.firstBucket+bucket)
}

// SetRegions sets which mappings of a process have which tables. Regions beyond MaxRegions
// are left out.
func (s *Sampler) SetRegions(pid uint32, regions []Region) error {
	p := samplerProcessRegions{Version: s.epoch + 1}
	for i, r := range regions[:min(len(regions), MaxRegions)] {
		to := &p.Regions[i]
		to.Start, to.End, to.Base = r.Start, r.End, r.Base
		to.FirstRow, to.FirstRule = r.Table.firstRow, r.Table.firstRule
		to.FirstBucket, to.BucketCount = r.Table.firstBucket, r.Table.buckets
		p.Count++
	}
	if err := s.maps.Regions.Put(pid, &p); err != nil {
		return fmt.Errorf("set code regions of process %d: %w", pid, err)
	}
	return s.endEpoch()
}
