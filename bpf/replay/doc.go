// Package replay runs the stack walker of bpf/c in user space, over recorded memory (package
// snapshot) or the memory of a stopped process, for tests. No command links it; it needs
// cgo.
//
// walker.inc includes bpf/c/walk.h itself, for each of the two register maps, and gives it
// what the kernel gives the BPF program: reads of the target's memory, loops and map
// entries.
//
// The tests check the walker in three ways: against golden stacks of recorded snapshots
// (testdata, made by scripts/snapshots); against an independent implementation (package
// oracle) on live processes; and with corrupted snapshots, for which every walk must end
// with a stop reason.
//
// testdata has, for each release of GHC and each way, VERSION/WAY.zip with the snapshots
// and VERSION/WAY.txtar with their golden stacks: text that may be read, reviewed and
// edited. scripts/snapshots VERSION records all of a release's again; git diff shows then
// which stacks changed. testdata/differing.txt lists those that the walker gets wrong.
//
//	unzip -l testdata/9.0.2/O2.zip                        the snapshots
//	sed -n '/^-- deep/,/^-- /p' testdata/9.0.2/O2.txtar   one golden stack
//	go test -v -run TestGoldenStacks/9.0.2/O2/deep        its walk
package replay
