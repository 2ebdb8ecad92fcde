package cpu

// restricted counts the interrupts of a clock that is sampled in user code or in the kernel alone. Its timer interrupts the program
// wherever that is, but only where the event is wanted does the kernel call the program that counts them.
type restricted struct {
	expected float64 // in the target's CPU time so far
	target   uint64  // CPU time of the target until then, ns
}

// pass adds what is expected until the target has used so much CPU time, ns, at so many interrupts a second.
func (r *restricted) pass(target uint64, perSecond float64) {
	r.expected += float64(target-min(r.target, target)) / 1e9 * perSecond
	r.target = target
}

// interrupts is how many there were, if so many were counted.
func (r *restricted) interrupts(counted uint64) uint64 { return max(counted, uint64(r.expected)) }
