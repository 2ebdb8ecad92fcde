package source

import "strings"

// managers are the labels of the threads in which GHC's base library waits for files
// and timers on behalf of all others.
var managers = []string{"IOManager", "TimerManager"}

// IOManager reports whether a label is that of a thread of the I/O manager, whose waiting is idleness.
func IOManager(label string) bool {
	for _, m := range managers {
		if strings.HasPrefix(label, m) {
			return true
		}
	}
	return false
}
