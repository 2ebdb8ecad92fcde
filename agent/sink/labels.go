package sink

// thread is a Haskell thread of a process.
type thread struct {
	pid uint32
	tso uint64
}

// maxLabels bounds the remembered labels.
const maxLabels = 1 << 16

// labels are those of all threads, as they were last written. The zero value is ready.
type labels struct {
	of    map[uint32]map[uint64]string // by process and thread
	count int
}

// set reports whether a label is new.
func (l *labels) set(t thread, label string) bool {
	if l.of[t.pid][t.tso] == label {
		return false
	}
	if l.of == nil || l.count >= maxLabels {
		l.of, l.count = map[uint32]map[uint64]string{}, 0
	}
	if l.of[t.pid] == nil {
		l.of[t.pid] = map[uint64]string{}
	}
	if _, known := l.of[t.pid][t.tso]; !known {
		l.count++
	}
	l.of[t.pid][t.tso] = label
	return true
}

// forget forgets the labels of a process.
func (l *labels) forget(pid uint32) {
	l.count -= len(l.of[pid])
	delete(l.of, pid)
}
