package reasons

import "strings"

// worth is the part of an element from which on there is advice about a part of it.
const worth = 0.1

// advice returns what usually makes an element less.
func advice(r *Reason) []string {
	has := func(part string) bool {
		for _, q := range r.Parts {
			if q.Name == part {
				return float64(q.Weight) >= worth*float64(r.Weight)
			}
		}
		return false
	}
	var out []string
	add := func(when bool, text string) {
		if when {
			out = append(out, text)
		}
	}
	switch r.Element {
	case GC, GCWaiting:
		add(r.By == "" && r.Element == GC, "The log does not say who allocates: record with -e cycles,alloc,gc.")
		add(len(r.Causes) > 0, "Allocate less where most is allocated: strict fields and accumulators, no intermediate lists, unboxed arrays.")
		add(has(copying) || has(compact), "Copy less often: a larger allocation area (+RTS -A64m) collects less often, and more of it has died by then; -F4 makes major collections rarer, for memory.")
		add(has(copying), "Keep less: every major collection copies all that is live. The heap over time shows what stays; large data that does not change fits into a compact region.")
		add(has(marking) || has(sweeping), "The non-moving collector works beside the program; without +RTS --nonmoving-gc collections stop it, and cost less in all.")
		add(has(compact), "Compaction (+RTS -c) saves memory for time: copying is faster where there is room.")
		add(has(waiting) || r.Element == GCWaiting, "Threads of the parallel collector wait: fewer of them (+RTS -qn2), larger work for each (-A64m), or one alone (-qg).")
	case RTS:
		add(has(stm), "Transactions run again when another one changed what they read: make them shorter, read fewer TVars, split one that all change.")
		add(has(scheduler), "Many short turns of threads: batch their work, use fewer capabilities (-N), and forkOS and bound threads only where C needs them.")
		add(has(blocks), "Blocks are taken and given back around collections: a larger allocation area (+RTS -A64m) and large nursery chunks (-n4m) do so less often.")
		add(has(io), "Threads that sleep or wait for input cost a little each time: wait for several at once; +RTS -V0 turns the ticker off.")
	case STG:
		add(has(thunks), "Values are built lazily and evaluated later: strict accumulators (foldl', BangPatterns, StrictData) save building them.")
		add(has(unknown), "Functions are passed as values, or through type classes that were not specialised: INLINABLE or SPECIALISE pragmas, -fexpose-all-unfoldings and -fspecialise-aggressively.")
		add(has(checks), "Allocation areas are used up often: see who allocates.")
	case Search:
		out = append(out,
			"What Curry's non-determinism costs. Deterministic code pays none of it: compute with values, not with variables or choices, where values are known.",
			"Every function that takes a choice apart copies it to its result (pull-tabbing): make choices late, where little work depends on them, and fail early, before the rest of a value is built.")
	case Foreign:
		out = append(out, "C code, and the C library: the callers below are the Haskell functions that it works for. memcpy and memmove are mostly copies of byte strings and arrays.")
	case Kernel:
		out = append(out, "System calls and page faults. Larger reads and writes (Builder, Text or ByteString in place of String; a larger buffer) need fewer calls. Page faults come with memory that is new: a smaller allocation area (+RTS -A) is touched again sooner, and stays in the cache.")
		add(!kernelStacks(r), "ccagent record --kernel records the kernel's functions, and so which system calls these are.")
	case Unresolved:
		out = append(out,
			"Code that no symbol names. Of a stripped program the collector is among it: C code, outside any Haskell function.",
			"ccagent doctor PROG says what is missing; ccagent symbolize --debug-file names it where the unstripped program is at hand.")
	}
	return out
}

// kernelStacks reports whether the parts of the kernel are of its own functions.
func kernelStacks(r *Reason) bool {
	for _, q := range r.Parts {
		if q.Name == "page faults" || q.Name == "interrupts" || strings.HasPrefix(q.Name, "system call ") {
			return true
		}
	}
	return false
}
