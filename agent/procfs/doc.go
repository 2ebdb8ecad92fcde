// Package procfs reads /proc and /sys: facts about processes and the machine.
//
// A process may end, or write what it likes into its own entries, at any time: lines
// that are not as the kernel writes them are left out, and their number is bounded.
//
// github.com/prometheus/procfs does not serve here. It gives no list of mappings if one line
// is odd, reads any number of them, joins the words of a path by one space each, has neither
// the tracer, the supplementary groups nor the sets of signals, and opens a process's stat
// anew for each look at its CPU time, when the number may be another process's.
package procfs
