// Package procfs reads what /proc and /sys tell of processes and of the machine.
//
// A process may end, or write what it likes into its own entries, at any time: lines
// that are not as the kernel writes them are left out, and their number is bounded.
package procfs
