package eventlog

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// Reading takes time in proportion to a log's bytes, whatever they are: the work of
// judging damage (events judged, bytes moved and searched) is no more than a fixed
// number of steps a byte, and four times the bytes take no more than about four times
// the work.
func TestWorkIsLinearInDamage(t *testing.T) {
	const small, large = 1 << 20, 4 << 20
	for name, damage := range damages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			work := func(n int) int64 {
				log := mixedLog(t, 1)
				log = append(log[:len(log)-2], damage(n)...)
				r := NewReader(bytes.NewReader(log))
				for r.Next() {
				}
				if r.Err() != nil || r.Offset() != int64(len(log)) {
					t.Fatalf("read up to %d of %d, %v", r.Offset(), len(log), r.Err())
				}
				return r.in.work
			}
			a, b := work(small), work(large)
			t.Logf("%d steps a byte of 1 MiB, %d of 4 MiB", a/small, b/large)
			if b > 20*large || b > 5*max(a, small) {
				t.Errorf("%d steps for 1 MiB, %d for 4 MiB", a, b)
			}
		})
	}
}

// damages are makers of bytes that stand where events should.
func damages() map[string]func(n int) []byte {
	sizes := map[uint16]uint16{}
	for _, et := range Types() {
		sizes[et.ID] = et.Size
	}
	event := func(id uint16, time uint64, payload []byte) []byte {
		b := binary.BigEndian.AppendUint16(nil, id)
		b = binary.BigEndian.AppendUint64(b, time)
		if sizes[id] == VariableSize {
			b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
		}
		return append(b, payload...)
	}
	// repeat fills n bytes with what next makes.
	repeat := func(n int, next func(i int) []byte) []byte {
		var b []byte
		for i := 0; len(b) < n; i++ {
			b = append(b, next(i)...)
		}
		return b[:n]
	}
	bad := []byte{0xff, 0xff, 0xff, 0xff} // no payload of a sample
	const second = 1_000_000_000
	return map[string]func(n int) []byte{
		"zeros": func(n int) []byte { return make([]byte, n) },
		"ones":  func(n int) []byte { return bytes.Repeat([]byte{0xff}, n) },
		"noise": func(n int) []byte {
			rng := rand.New(rand.NewPCG(1, 2))
			return repeat(n, func(int) []byte { return binary.BigEndian.AppendUint64(nil, rng.Uint64()) })
		},
		// Each event looks sound until its payload is read, at times far from the others'.
		"bad payloads at far times": func(n int) []byte {
			return repeat(n, func(i int) []byte { return event(IDSample, uint64(10+2*i)*second, bad) })
		},
		// Every second one is sound, so that what is near is another time again.
		"sound and bad payloads at far times": func(n int) []byte {
			return repeat(n, func(i int) []byte {
				if i%2 == 0 {
					return event(IDUserMsg, uint64(10+2*i)*second, []byte("x"))
				}
				return event(IDSample, uint64(10+2*i)*second, bad)
			})
		},
		"times that no event can have": func(n int) []byte {
			return repeat(n, func(i int) []byte { return event(IDUserMsg, uint64(i%2)<<62+5*second, []byte("x")) })
		},
		"block markers that lead nowhere": func(n int) []byte {
			return repeat(n, func(i int) []byte {
				b := event(IDBlockMarker, uint64(10+2*i)*second, nil)
				b = binary.BigEndian.AppendUint32(b, 60)
				b = binary.BigEndian.AppendUint64(b, uint64(11+2*i)*second)
				return append(b, 0, 1, 0xff)
			})
		},
		// The size of such an event is found by its NULs, which are far.
		"info tables without end": func(n int) []byte {
			return repeat(n, func(i int) []byte {
				if i%40 == 39 {
					return append(bytes.Repeat([]byte{0xff}, 64<<10), 0)
				}
				return event(IDInfoTable, 5*second, bytes.Repeat([]byte("x"), 1700))
			})
		},
		"ids of info tables": func(n int) []byte {
			return bytes.Repeat(binary.BigEndian.AppendUint16(nil, IDInfoTable), n/2)
		},
		"texts of NULs": func(n int) []byte {
			return repeat(n, func(int) []byte { return event(IDUserMsg, 5*second, make([]byte, 60_000)) })
		},
	}
}
