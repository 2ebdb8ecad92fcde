package compat

import (
	"encoding/binary"
	"math"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// Tags of ghc-stack-profiler's messages and of the entries of a stack.
const (
	tagStack  = 0xffca
	tagPart   = 0xffcb
	tagString = 0xffcc
	tagSource = 0xffcd

	entryString = 2
	entrySource = 3
)

// maxMessage is below the maximum of an event's 16-bit length.
const maxMessage = 65000

// stackProfiler writes each sample of the clock event as a whole stack of its thread,
// root first.
func stackProfiler(ss []*profile.Selection) (Write, error) {
	s, err := clock(ss)
	if err != nil {
		return nil, err
	}
	return func(w *eventlog.Writer) error {
		m := &messages{w: w, strings: make(map[string]uint64), frames: make(map[*profile.Frame][]byte)}
		entries := make([][]byte, len(s.Profile.Sites))
		walker := stacks.NewWalker(s, false)
		for site := range s.EachSample() {
			if entries[site] == nil {
				if entries[site], err = m.entries(walker.Stack(site)); err != nil {
					return err
				}
			}
		}
		for site, smp := range s.EachSample() {
			if err := m.stack(smp, entries[site]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

type messages struct {
	w       *eventlog.Writer
	strings map[string]uint64
	sources uint64
	frames  map[*profile.Frame][]byte // encoded entries
	buf     []byte
}

func (m *messages) send(time uint64, cap int) error {
	return m.w.Write(time, cap, &eventlog.UserBinaryMsg{Data: m.buf})
}

func (m *messages) str(s string) (uint64, error) {
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	id, ok := m.strings[s]
	if ok {
		return id, nil
	}
	id = uint64(len(m.strings))
	m.strings[s] = id
	m.buf = binary.BigEndian.AppendUint16(m.buf[:0], tagString)
	m.buf = binary.BigEndian.AppendUint64(m.buf, id)
	m.buf = binary.BigEndian.AppendUint16(m.buf, uint16(len(s)))
	m.buf = append(m.buf, s...)
	return id, m.send(0, eventlog.NoCap)
}

// source returns the id of a source location, and defines it if needed.
func (m *messages) source(file string, line uint32) (uint64, error) {
	f, err := m.str(file)
	if err != nil {
		return 0, err
	}
	id := m.sources
	m.sources++
	m.buf = binary.BigEndian.AppendUint16(m.buf[:0], tagSource)
	m.buf = binary.BigEndian.AppendUint64(m.buf, id)
	m.buf = binary.BigEndian.AppendUint32(m.buf, line)
	m.buf = binary.BigEndian.AppendUint32(m.buf, 1)
	m.buf = binary.BigEndian.AppendUint64(m.buf, f)
	return id, m.send(0, eventlog.NoCap)
}

// entry returns a frame's entry, and writes the definitions that it needs.
func (m *messages) entry(f *profile.Frame) ([]byte, error) {
	if e, ok := m.frames[f]; ok {
		return e, nil
	}
	label, err := m.str(name(f))
	if err != nil {
		return nil, err
	}
	e := []byte{entryString}
	e = binary.BigEndian.AppendUint64(e, label)
	if f.File != "" {
		src, err := m.source(f.File, f.Line)
		if err != nil {
			return nil, err
		}
		e[0] = entrySource
		e = binary.BigEndian.AppendUint64(e, src)
	}
	m.frames[f] = e
	return e, nil
}

// entries returns a stack's entries, root first. There is always at least one.
func (m *messages) entries(stack []stacks.Frame) ([]byte, error) {
	if len(stack) == 0 {
		stack = []stacks.Frame{{Frame: &hiddenFrame}}
	}
	var all []byte
	for i := len(stack) - 1; i >= 0; i-- {
		e, err := m.entry(stack[i].Frame)
		if err != nil {
			return nil, err
		}
		all = append(all, e...)
	}
	return all, nil
}

// size returns the size of encoded entries.
func size(entries []byte) int {
	if entries[0] == entrySource {
		return 17
	}
	return 9
}

// stack writes a sample, in several messages if one is too short.
func (m *messages) stack(s columns.Sample, entries []byte) error {
	thread := uint32(s.Thread.TSO)
	if s.Thread.TSO == 0 || s.Thread.TSO > math.MaxUint32 {
		thread = s.Thread.TID
	}
	for {
		n, end := 0, 0
		for end < len(entries) && end+17 <= maxMessage {
			end += size(entries[end:])
			n++
		}
		tag := uint16(tagStack)
		if end < len(entries) {
			tag = tagPart
		}
		m.buf = binary.BigEndian.AppendUint16(m.buf[:0], tag)
		m.buf = binary.BigEndian.AppendUint32(m.buf, s.Capability)
		m.buf = binary.BigEndian.AppendUint32(m.buf, thread)
		m.buf = binary.BigEndian.AppendUint16(m.buf, uint16(n))
		m.buf = append(m.buf, entries[:end]...)
		if err := m.send(s.Time, eventlog.NoCap); err != nil {
			return err
		}
		if entries = entries[end:]; len(entries) == 0 {
			return nil
		}
	}
}
