package eventlog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
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
}

// Events of GHC before 9.4, whose sources do not list them, are known.
func TestGHCVersions(t *testing.T) {
	for version, v := range ghcOthers {
		sizes := maps.Clone(ghcSizes)
		maps.Copy(sizes, v.sizes)
		for _, id := range ghcVariable {
			sizes[id] = VariableSize
		}
		for _, id := range v.without {
			delete(sizes, id)
		}
		knowsEvents(t, version, sizes)
	}
}

// knowsEvents requires that every event of a GHC version is known, with the size that the header declares, and is
// the same when written again; an unknown one is skipped by its size.
func knowsEvents(t *testing.T, version string, sizes map[uint16]uint16) {
	const fixedNew, variableNew = 250, 251
	sizes[fixedNew], sizes[variableNew] = 3, VariableSize
	ids := slices.Sorted(maps.Keys(sizes))
	var types []EventType
	for _, id := range ids {
		types = append(types, EventType{ID: id, Size: sizes[id], Desc: fmt.Sprint("event ", id)})
	}
	log := appendHeader(nil, types)
	variable := 0
	time := uint64(1)
	for _, id := range ids {
		if sizes[id] == VariableSize && id != variableNew {
			variable++
			continue
		}
		if id == IDBlockMarker {
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
	if r.Err() != nil || !r.Complete() || unknown != 2 || len(seen)+unknown+1+variable != len(ids) {
		t.Errorf("GHC %s: %v, complete %t, %d unknown, %d of %d events", version, r.Err(), r.Complete(), unknown, len(seen), len(ids))
	}
	for _, id := range ids {
		if typ := r.types.of(id); id < fixedNew && (typ == nil || typ.kind == nil) {
			t.Errorf("GHC %s: event %d is not known", version, id)
		}
	}
}

// Events and breakdowns of heap profiles of each release are those of its sources: there is no compiler of most of them.
func TestEventsAreThoseOfGHCsSources(t *testing.T) {
	const internString = 42 // which no release writes
	breakdowns := map[string]HeapBreakdown{
		"COST_CENTRE": BreakdownCostCentre, "MODULE": BreakdownModule, "CLOSURE_DESCR": BreakdownClosureDescr, "TYPE_DESCR": BreakdownTypeDescr,
		"RETAINER": BreakdownRetainer, "BIOGRAPHY": BreakdownBiography, "CLOSURE_TYPE": BreakdownClosureType, "INFO_TABLE": BreakdownInfoTable, "ERA": BreakdownEra,
	}
	text, err := os.ReadFile("testdata/rts/events.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		sizes := map[uint16]uint16{}
		for _, fact := range f[1:] {
			if name, value, ok := strings.Cut(fact, "="); ok {
				if ours, known := breakdowns[name]; !known || strconv.Itoa(int(ours)) != value {
					t.Errorf("GHC %s: %s, we have %d", f[0], fact, ours)
				}
				continue
			}
			var id uint16
			var size int16
			if _, err := fmt.Sscanf(fact, "%d:%d", &id, &size); err != nil {
				t.Fatalf("%q: %v", fact, err)
			}
			if id != internString {
				sizes[id] = uint16(size)
			}
		}
		knowsEvents(t, f[0], sizes)
	}
}
