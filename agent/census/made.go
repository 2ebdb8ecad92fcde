package census

import (
	"io"
	"slices"
	"strings"

	"ccagent/agent/process"
	"ccagent/agent/procfs"
)

// madeCode reads executable memory of a process that is none of its modules' files: there GHCi makes the info tables of the
// constructors that it has loaded as byte code.
type madeCode struct {
	pid    int
	memory *process.Memory
	ranges []Range
	// fresh is set if the ranges were read for this census. Most programs have no such tables, and they are not asked for.
	fresh bool
}

func (m *madeCode) has(at uint64) bool {
	return slices.ContainsFunc(m.ranges, func(r Range) bool { return at >= r.Start && at < r.End })
}

// ReadAt implements io.ReaderAt within that memory.
func (m *madeCode) ReadAt(b []byte, at int64) (int, error) {
	if !m.has(uint64(at)) && !m.fresh {
		m.fresh, m.ranges = true, nil
		maps, err := procfs.Maps(m.pid)
		if err != nil {
			return 0, err
		}
		for _, mapping := range maps {
			if !strings.HasPrefix(mapping.Path, "[") { // the kernel's
				m.ranges = append(m.ranges, Range{mapping.Start, mapping.End})
			}
		}
	}
	if !m.has(uint64(at)) {
		return 0, io.EOF
	}
	return m.memory.ReadAt(b, at)
}
