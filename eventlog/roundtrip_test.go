package eventlog

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Every event is the same after being written and read, and gives the same bytes when
// written again. The reader reuses its structs, so that leftovers of one record would show
// in the next.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var log bytes.Buffer
	w := NewWriter(&log, &WriterOptions{Buffer: 4 << 10})
	var written []Event
	for range 200 {
		for _, ev := range everyEvent() {
			generate(rng, ev)
			if err := w.Write(uint64(len(written)), NoCap, ev); err != nil {
				t.Fatalf("%T: %v", ev, err)
			}
			written = append(written, ev)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := NewReader(bytes.NewReader(log.Bytes()))
	n := 0
	for r.Next() {
		rec := r.Record()
		if rec.Event.EventID() == IDBlockMarker {
			continue
		}
		if rec.Time != uint64(n) || rec.Cap != NoCap {
			t.Fatalf("event %d: time %d, capability %d", n, rec.Time, rec.Cap)
		}
		if diff := cmp.Diff(written[n], rec.Event, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("event %d, written and read:\n%s", n, diff)
		}
		n++
	}
	if r.Err() != nil || n != len(written) || !r.Complete() {
		t.Fatalf("%d of %d events, complete %t: %v", n, len(written), r.Complete(), r.Err())
	}
	if int64(log.Len()) != w.Size() {
		t.Errorf("Size is %d, written were %d bytes", w.Size(), log.Len())
	}
	if again := reencode(t, log.Bytes()); !bytes.Equal(again, log.Bytes()) {
		t.Errorf("encoded again, the log differs at %d", firstDifference(again, log.Bytes()))
	}
}

// Decoding overwrites every field, whatever the struct held before.
func TestDecodingOverwritesEveryField(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, k := range kinds {
		used, zero := k.make(), k.make()
		generate(rng, used)
		var c codec
		c.decode(nil, k.Size, true)
		used.layout(&c)
		if diff := cmp.Diff(zero, used, cmpopts.EquateEmpty()); diff != "" && !exempt(zero) {
			t.Errorf("%T decoded from nothing:\n%s", used, diff)
		}
	}
}

// exempt names what has no zero value in the log.
func exempt(ev Event) bool {
	_, is := ev.(*NonmovingCensus)
	return is
}

// A payload that ends after any of its fields gives those fields and zero for the rest, so
// that events can grow.
func TestOwnEventsMayGrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, k := range kinds {
		if !k.own {
			continue
		}
		whole := k.make()
		generate(rng, whole)
		c := codec{encoding: true}
		whole.layout(&c)
		v := reflect.ValueOf(whole).Elem()
		boundaries := 0
		for cut := range len(c.buf) + 1 {
			short := k.make()
			var d codec
			d.decode(c.buf[:cut], VariableSize, true)
			short.layout(&d)
			if d.failed != "" {
				continue
			}
			boundaries++
			s := reflect.ValueOf(short).Elem()
			absent := false
			for i := range v.NumField() {
				if v.Field(i).Kind() == reflect.Array { // each element is a field
					for j := range v.Field(i).Len() {
						if e := s.Field(i).Index(j); !e.IsZero() && !e.Equal(v.Field(i).Index(j)) {
							t.Fatalf("%T cut at %d: element %d of field %d is neither whole nor zero", whole, cut, j, i)
						}
					}
					continue
				}
				same := cmp.Equal(v.Field(i).Interface(), s.Field(i).Interface(), cmpopts.EquateEmpty())
				if !same && !s.Field(i).IsZero() && !(s.Field(i).Kind() == reflect.Slice && s.Field(i).Len() == 0) {
					t.Fatalf("%T cut at %d: field %d is neither whole nor zero", whole, cut, i)
				}
				if absent && same && !v.Field(i).IsZero() && v.Field(i).Kind() != reflect.Slice {
					t.Fatalf("%T cut at %d: field %d is there, one before it is not", whole, cut, i)
				}
				absent = absent || !same
			}
		}
		if boundaries < v.NumField() {
			t.Errorf("%T: decodes at %d places, has %d fields", whole, boundaries, v.NumField())
		}
		// Fields of a later version.
		later := k.make()
		var d codec
		d.decode(append(c.buf, 1, 2, 3), VariableSize, true)
		later.layout(&d)
		if d.failed != "" || !cmp.Equal(whole, later, cmpopts.EquateEmpty()) {
			t.Errorf("%T with more fields than known: %s", whole, d.failed)
		}
	}
}
