package footprint

import (
	"strings"

	"ccagent/agent/procfs"
	"ccagent/eventlog"
)

// ofHeap reports whether a mapping is part of Haskell's heap.
func (b *builder) ofHeap(m *procfs.Usage) bool {
	return m.Start >= b.d.Space[0] && m.Start < b.d.Space[1]
}

// mappings divides what is outside the heap.
func (b *builder) mappings() {
	all := b.r.Mappings
	for i := range all {
		m := &all[i]
		b.resident += m.Resident
		b.swapped += m.Swapped
		if b.ofHeap(m) {
			continue
		}
		k := key{kind: eventlog.FootprintAnonymous}
		switch {
		case m.Path == "[heap]":
			k.kind = eventlog.FootprintMalloc
		case b.isStack(m):
			k.kind = eventlog.FootprintOSStacks
		case strings.HasPrefix(m.Path, "/"):
			k.kind, k.name = eventlog.FootprintFiles, m.Path
		case m.Path == "" && m.Writable && i > 0 && all[i-1].End == m.Start && strings.HasPrefix(all[i-1].Path, "/"):
			// Static data that are 0 at first, behind those of the file.
			k.kind, k.name = eventlog.FootprintFiles, all[i-1].Path
		case strings.HasPrefix(m.Path, "[v"): // [vdso], [vvar], [vsyscall]
			k.kind = eventlog.FootprintKernel
		}
		given := min(m.LazyFree, m.Resident)
		if given > 0 {
			b.part(key{kind: eventlog.FootprintGivenBack}, given, given, 0)
		}
		b.part(k, m.Resident-given, m.End-m.Start, 1)
	}
}

// isStack reports whether an OS thread has its stack in a mapping.
func (b *builder) isStack(m *procfs.Usage) bool {
	if m.Path == "[stack]" {
		return true
	}
	if m.Path != "" || !m.Writable {
		return false
	}
	for _, sp := range b.r.StackPointers {
		if sp >= m.Start && sp < m.End {
			return true
		}
	}
	return false
}
