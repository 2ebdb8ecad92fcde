package profile

import (
	"maps"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// A sample of a thread that waits has what it waits for as its leaf, and one of a transaction how its attempt
// has ended. Its weight is that of the nearest Haskell code, which asked for it, and of the leaf's own element as well:
// both rows have it.

// waitElements are the names of the elements of waits.
var waitElements = map[eventlog.ThreadState]string{
	eventlog.StateMVar: "(MVar)", eventlog.StateMVarRead: "(MVar read)", eventlog.StateBlackHole: "(black hole)",
	eventlog.StateSTM: "(STM)", eventlog.StateDelay: "(delay)", eventlog.StateRead: "(read)", eventlog.StateWrite: "(write)",
	eventlog.StateThrowTo: "(throwTo)", eventlog.StateForeign: "(foreign call)", eventlog.StateUnknown: "(other wait)",
	eventlog.StateUnwatched: "(not watched)",
}

// endElements are the names of the elements of attempts to run a transaction.
var endElements = map[eventlog.TransactionEnd]string{
	eventlog.TransactionCommitted: "(committed)", eventlog.TransactionFailed: "(failed validation)",
	eventlog.TransactionRetried: "(retried)", eventlog.TransactionThrown: "(exception)",
}

// WaitElement reports whether an element is what threads wait for.
func WaitElement(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(waitElements)), name)
}

// EndElement reports whether an element is how attempts to run a transaction end, and whether they had committed.
func EndElement(name string) (ended, committed bool) {
	for end, element := range endElements {
		if element == name {
			return true, end == eventlog.TransactionCommitted
		}
	}
	return false, false
}

// leafElements are the names of all elements of leaves without code.
func leafElements() []string {
	return slices.Concat(slices.Collect(maps.Values(waitElements)), slices.Collect(maps.Values(endElements)))
}

// leafElement is the name of what a place of columns.PlaceLeaf says.
func leafElement(pl columns.Place) string {
	if end := pl.Addr &^ columns.Ended; pl.Addr != end && end < uint64(eventlog.TransactionEnds) {
		return endElements[eventlog.TransactionEnd(end)]
	}
	if pl.Addr <= uint64(eventlog.StateUnwatched) {
		if name := waitElements[eventlog.ThreadState(pl.Addr)]; name != "" {
			return name
		}
	}
	return waitElements[eventlog.StateUnknown]
}

// leafOf returns the place of a site's leaf if that is none of code, else 0.
func (p *Profile) leafOf(site int) uint32 {
	n := p.Sites[site].Node
	if k := p.Nodes.Kind[n]; k != eventlog.FrameWait && k != eventlog.FrameTransaction {
		return 0
	}
	return p.Nodes.Place[n]
}
