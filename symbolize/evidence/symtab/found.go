package symtab

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"ccagent/symbolize/cfi"
	"ccagent/symbolize/gccode"
	"ccagent/symbolize/modulecode"
)

// found is what takes long to find in a large file; nil where it was not sought. It can be kept
// between runs, by parts.
type found struct {
	classes   map[string]bool     // see Table.IsClass
	collector *gccode.Collector   // see Evidence.collector
	named     *bool               // the collector's functions have names, see there
	modules   *modulecode.Map     // see Evidence.modules
	defined   hashes              // of all names, see Table.Defines
	makers    map[uint64][]uint64 // see Table.ThunkMakers
	fresh     bool                // not all of it was kept
}

// Names of the parts. Ranges are pairs of addresses, 64 bits each, little-endian.
const (
	partClasses   = "classes" // each ends in a newline
	partCollector = "collector"
	partLocks     = "locks"
	partNamed     = "named"   // a byte, 1 or 0
	partModules   = "modules" // see modulecode.Map
	partDefined   = "defined" // see hashes
	partOrder     = "order"   // see encodeOrder
	partMakers    = "makers"  // see encodeMakers
)

// Recall takes what Found has given for the same files. What is malformed is left out.
func (t *Table) Recall(parts map[string][]byte) {
	if b, ok := parts[partClasses]; ok {
		t.found.classes = map[string]bool{}
		for class := range strings.Lines(string(b)) {
			t.found.classes[strings.TrimSuffix(class, "\n")] = true
		}
	}
	code, ok := decodeRanges(parts[partCollector])
	locks, ok2 := decodeRanges(parts[partLocks])
	if _, sought := parts[partCollector]; sought && ok && ok2 {
		t.found.collector = &gccode.Collector{Code: code, Locks: locks}
	}
	if b := parts[partNamed]; len(b) == 1 {
		named := b[0] != 0
		t.found.named = &named
	}
	if b, sought := parts[partModules]; sought {
		t.found.modules = modulecode.Decode(b)
	}
	t.found.defined = decodeHashes(parts[partDefined])
	if b, sought := parts[partMakers]; sought {
		t.found.makers = decodeMakers(b)
	}
}

// Found gives what was found, nil if there is nothing that was not recalled.
func (t *Table) Found() map[string][]byte {
	if !t.found.fresh {
		return nil
	}
	parts := map[string][]byte{}
	if t.found.classes != nil {
		var b []byte
		for class := range t.found.classes {
			b = append(append(b, class...), '\n')
		}
		parts[partClasses] = b
	}
	if c := t.found.collector; c != nil {
		parts[partCollector], parts[partLocks] = encodeRanges(c.Code), encodeRanges(c.Locks)
	}
	if named := t.found.named; named != nil {
		parts[partNamed] = []byte{0}
		if *named {
			parts[partNamed][0] = 1
		}
	}
	if t.found.modules != nil {
		parts[partModules] = t.found.modules.Encode()
	}
	switch {
	case t.found.defined != nil:
		parts[partDefined] = t.found.defined
	case t.defined != nil:
		parts[partDefined] = hashesOf(t.defined.all)
	}
	if t.found.makers != nil {
		parts[partMakers] = encodeMakers(t.found.makers)
	}
	if files, ok := t.all.(filed); ok {
		parts[partOrder] = t.encodeOrder(files.Files())
	}
	return parts
}

func encodeRanges(ranges cfi.Ranges) []byte {
	b := make([]byte, 0, 16*len(ranges))
	for _, r := range ranges {
		b = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, r.Lo), r.Hi)
	}
	return b
}

// decodeRanges reads ranges, which are in order and do not overlap.
func decodeRanges(b []byte) (ranges cfi.Ranges, ok bool) {
	if len(b)%16 != 0 || len(b) > math.MaxInt32 {
		return nil, false
	}
	last := uint64(0)
	for ; len(b) > 0; b = b[16:] {
		r := cfi.Range{Lo: binary.LittleEndian.Uint64(b), Hi: binary.LittleEndian.Uint64(b[8:])}
		if r.Lo < last || r.Hi <= r.Lo {
			return nil, false
		}
		ranges, last = append(ranges, r), r.Hi
	}
	return slices.Clip(ranges), true
}
