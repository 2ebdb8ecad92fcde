// Package hold stops a thread of another process at an instruction, and lets it go. The
// process survives whatever becomes of the agent in the meantime.
//
// The thread is traced, and the instruction has a uprobe whose program sends the thread a
// signal that is ignored by default. The thread stops as any traced one does that gets a
// signal; the tracer swallows it. A tracer that is killed leaves a thread with a signal
// that it ignores, a probe without a tracer does nothing at all, and both end with the
// agent's descriptors. A breakpoint written into the process would stay and kill it, and
// SIGSTOP would leave it stopped.
//
// The thread stands behind the instruction, which the kernel executes before it looks at
// signals.
//
// A process that its control group has frozen is not stopped. What is to be done while it stands
// is done by WhileFrozen, with registers that BPF reads.
package hold
