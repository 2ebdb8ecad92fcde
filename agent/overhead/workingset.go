package overhead

// workingSet is memory that a measurement goes through in place of a program. What a hit costs a program is
// not what it costs a loop that does nothing else: the program has displaced the kernel's code and data
// from the nearer caches since the hit before, and the kernel displaces the program's.
type workingSet struct {
	memory []byte
	at     int
}

const (
	// workingBytes exceeds the caches that a CPU has to itself, as GHC's nurseries (1 or 4 MiB) do.
	workingBytes = 1 << 20
	cacheLine    = 64
)

func newWorkingSet() *workingSet { return &workingSet{memory: make([]byte, workingBytes)} }

// use writes to so many bytes, from where the use before has ended.
func (w *workingSet) use(bytes int) {
	at := w.at
	for range bytes / cacheLine {
		w.memory[at]++
		at = (at + cacheLine) % workingBytes
	}
	w.at = at
}
