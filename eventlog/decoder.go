package eventlog

import "slices"

// Copied is a record copied from a Reader, to be decoded elsewhere while the Reader
// continues.
type Copied struct {
	rec       Record // without event, unless that is Malformed
	id        uint16
	from, len int // of its payload, in the bytes it was copied to
}

// Copy appends the last record's payload to buf and returns what a Decoder needs to know
// about it.
func (r *Reader) Copy(buf []byte) (Copied, []byte) {
	c := Copied{rec: r.rec, id: r.rec.Event.EventID(), from: len(buf), len: len(r.rec.Payload)}
	c.rec.Payload = nil
	if _, bad := r.rec.Event.(*Malformed); bad {
		c.len = 0
		return c, buf
	}
	c.rec.Event = nil
	return c, append(buf, r.rec.Payload...)
}

// Decoder decodes copied records, concurrently with the Reader that they come from.
type Decoder struct {
	types   []readType
	c       codec
	unknown Unknown
	rec     Record
}

// Decoder makes a Decoder for the records of the log, whose header has been read.
func (r *Reader) Decoder() *Decoder {
	d := &Decoder{types: slices.Clone(r.types.byID)}
	for id := range d.types {
		if t := &d.types[id]; t.event != nil {
			t.event = kindOf[uint16(id)].make()
		}
	}
	return d
}

// Decode returns the record, whose payload is in buf. It is valid until the next call.
func (d *Decoder) Decode(c *Copied, buf []byte) *Record {
	d.rec = c.rec
	if d.rec.Event != nil {
		return &d.rec
	}
	d.rec.Payload = buf[c.from : c.from+c.len]
	t := &d.types[c.id]
	if t.event == nil {
		d.unknown = Unknown{ID: c.id, Desc: t.desc, Payload: d.rec.Payload}
		d.rec.Event = &d.unknown
		return &d.rec
	}
	d.c.decode(d.rec.Payload, t.size, t.lenient)
	t.event.layout(&d.c)
	d.rec.Event = t.event
	return &d.rec
}
