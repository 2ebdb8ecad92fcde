package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// ghcSizes are the events of fixed size by id, as GHC's sources (rts/gen_event_types.py)
// and the headers of 9.6.6's logs have them.
var ghcSizes = map[uint16]uint16{
	0: 4, 1: 4, 2: 10, 3: 4, 4: 6, 8: 6, 9: 0, 10: 0, 11: 0, 12: 0, 15: 4, 18: 14, 20: 0, 21: 0, 22: 0,
	25: 6, 26: 4, 27: 6, 28: 6, 32: 8, 33: 8, 34: 56, 35: 0, 36: 0, 37: 0, 38: 0, 39: 2, 40: 0, 41: 0, 43: 16,
	45: 2, 46: 2, 47: 2, 48: 2, 49: 12, 50: 12, 51: 12, 52: 38, 53: 58, 54: 0, 55: 18, 56: 12, 57: 8, 59: 0,
	90: 16, 91: 12, 162: 8, 165: 8, 166: 16, 168: 8,
	200: 0, 201: 4, 202: 0, 203: 0, 204: 0, 205: 0, 206: 2, 207: 13, 211: 32, 212: 0,
}

// ghcVariable are those of variable size.
var ghcVariable = []uint16{16, 19, 29, 30, 31, 44, 58, 160, 161, 163, 164, 167, 169, 181, 210}

// What other versions declare otherwise; none is a size that is gone.
var ghcOthers = map[string]struct {
	without []uint16
	sizes   map[uint16]uint16
}{
	"8.10":                         {without: []uint16{90, 91, 169, 210, 211, 212}},
	"9.0.2":                        {without: []uint16{90, 91, 169, 210, 211, 212}},
	"a source between 9.2 and 9.6": {sizes: map[uint16]uint16{201: 0}},
	"9.6.6":                        {},
	"since 9.10":                   {sizes: map[uint16]uint16{207: 14, 208: 8}},
}

// Every event of every GHC version is known, with the size that the header declares, and is
// the same when written again; an unknown one is skipped by its size.
func TestGHCVersions(t *testing.T) {
	const fixedNew, variableNew = 250, 251
	for version, v := range ghcOthers {
		sizes := maps.Clone(ghcSizes)
		maps.Copy(sizes, v.sizes)
		for _, id := range ghcVariable {
			sizes[id] = VariableSize
		}
		for _, id := range v.without {
			delete(sizes, id)
		}
		sizes[fixedNew], sizes[variableNew] = 3, VariableSize
		ids := slices.Sorted(maps.Keys(sizes))
		var types []EventType
		for _, id := range ids {
			types = append(types, EventType{ID: id, Size: sizes[id], Desc: fmt.Sprint("event ", id)})
		}
		log := appendHeader(nil, types)
		time := uint64(1)
		for _, id := range ids {
			if id == IDBlockMarker || sizes[id] == VariableSize && id != variableNew {
				continue
			}
			time++
			log = appendEventHead(log, id, time, sizes[id])
			n := int(sizes[id])
			if id == variableNew {
				n = 5
				binary.BigEndian.PutUint16(log[len(log)-2:], 5)
			}
			for i := range n {
				log = append(log, byte(1+i%7))
			}
		}
		log = append(log, 0xff, 0xff)
		r := NewReader(bytes.NewReader(log))
		var seen []uint16
		unknown := 0
		for r.Next() {
			rec := r.Record()
			switch ev := rec.Event.(type) {
			case *Malformed:
				t.Fatalf("GHC %s: %v", version, ev)
			case *Unknown:
				unknown++
				if ev.ID != fixedNew && ev.ID != variableNew {
					t.Errorf("GHC %s: event %d of %d bytes is not known", version, ev.ID, sizes[ev.ID])
				}
				continue
			}
			id := rec.Event.EventID()
			seen = append(seen, id)
			c := codec{encoding: true, size: sizes[id]}
			rec.Event.layout(&c)
			c.buf = append(c.buf, make([]byte, max(0, int(sizes[id])-len(c.buf)))...)
			if !bytes.Equal(c.buf[:sizes[id]], rec.Payload) {
				t.Errorf("GHC %s: event %d: % x is written as % x", version, id, rec.Payload, c.buf)
			}
		}
		if r.Err() != nil || !r.Complete() || unknown != 2 || len(seen)+unknown+1+len(ghcVariable)-variableLess(v.without) != len(ids) {
			t.Errorf("GHC %s: %v, complete %t, %d unknown, %d of %d events", version, r.Err(), r.Complete(), unknown, len(seen), len(ids))
		}
		for _, id := range ghcVariable {
			if typ := r.types.of(id); typ != nil && typ.event == nil {
				t.Errorf("GHC %s: event %d is not known", version, id)
			}
		}
	}
}

func variableLess(without []uint16) (n int) {
	for _, id := range without {
		if slices.Contains(ghcVariable, id) {
			n++
		}
	}
	return n
}
