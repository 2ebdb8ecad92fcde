package profile

import (
	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// A sample of a thread that waits has what it waits for as its leaf. Its weight is that of the
// nearest Haskell code, which asked for the wait, and of the element of such waits as well: both rows
// have it.

// waitElements are the names of the elements of waits.
var waitElements = map[eventlog.ThreadState]string{
	eventlog.StateMVar: "(MVar)", eventlog.StateMVarRead: "(MVar read)", eventlog.StateBlackHole: "(black hole)",
	eventlog.StateSTM: "(STM)", eventlog.StateDelay: "(delay)", eventlog.StateRead: "(read)", eventlog.StateWrite: "(write)",
	eventlog.StateThrowTo: "(throwTo)", eventlog.StateForeign: "(foreign call)", eventlog.StateUnknown: "(other wait)",
}

// waitElement is the name of what a place of columns.PlaceWait says that a thread waits for.
func waitElement(pl columns.Place) string {
	if pl.Addr < uint64(eventlog.StateUnknown) {
		if name := waitElements[eventlog.ThreadState(pl.Addr)]; name != "" {
			return name
		}
	}
	return waitElements[eventlog.StateUnknown]
}

// waitOf returns the place of what a site's thread waits for, 0 if it is no wait.
func (p *Profile) waitOf(site int) uint32 {
	n := p.Sites[site].Node
	if p.Nodes.Kind[n] != eventlog.FrameWait {
		return 0
	}
	return p.Nodes.Place[n]
}
