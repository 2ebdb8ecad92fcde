package eventlog

import (
	"math/rand/v2"
	"reflect"
	"strings"
)

// generate fills an event with random values of every magnitude, which are
// valid for other readers too.
func generate(rng *rand.Rand, ev Event) {
	fill(rng, reflect.ValueOf(ev).Elem())
	switch e := ev.(type) {
	case *HeapProfBegin:
		e.Breakdown = 1 + HeapBreakdown(rng.IntN(7))
	case *CapsetCreate:
		e.Type = 1 + CapsetType(rng.IntN(3))
	case *InfoTable:
		e.ClosureType = "21"
	case *NonmovingCensus:
		e.BlockSize = 1 << rng.IntN(16)
	case *TickyCounterDef:
		e.Info, e.JSON = 0, "" // ghc-events before 0.18 loses its place after these
	case *UserBinaryMsg:
		e.Data = []byte{'a' + byte(rng.IntN(26))} // other readers show no numbers for it
	case *CreateThread: // no thread has id 0
		e.Thread |= 1
	case *RunThread:
		e.Thread |= 1
	case *ThreadRunnable:
		e.Thread |= 1
	case *FileText:
		e.Text = make([]byte, rng.IntN(300))
	case *CoreText:
		e.Text = make([]byte, rng.IntN(300))
	}
}

func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rng, v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 1)
	case reflect.Int64:
		v.SetInt(int64(magnitude(rng, 64)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(magnitude(rng, v.Type().Bits()))
	case reflect.String:
		v.SetString(word(rng))
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), rng.IntN(6), 8)
		for i := range s.Len() {
			fill(rng, s.Index(i))
		}
		v.Set(s)
	default:
		panic("no generator for " + v.Type().String())
	}
}

func magnitude(rng *rand.Rand, width int) uint64 {
	return rng.Uint64() >> (64 - width) >> rng.IntN(width)
}

func word(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(12) {
		b.WriteRune([]rune("abcXYZ019 ./:_-$λ→")[rng.IntN(18)])
	}
	return b.String()
}

// everyEvent gives a new event of each type that a Writer takes.
func everyEvent() []Event {
	var evs []Event
	for _, k := range kinds {
		if k.ID != IDBlockMarker {
			evs = append(evs, k.make())
		}
	}
	return evs
}
