package profile

import "ccagent/eventlog"

// rtsAllocates has the functions of the run-time system that allocate for itself, and the names
// of the elements of what they allocate: it is no object that the code above them has asked for.
// Small objects of primops have no such name: who calls the primop has asked for them.
var rtsAllocates = map[string]string{
	"threadStackOverflow": "(stack chunks)",
	"createThread":        "(thread stacks)",
	"stg_forkzh":          "(thread stacks)", // calls createThread
	"stg_forkOnzh":        "(thread stacks)",
}

// ownAllocation reports whether a place is code that allocates for the run-time system itself.
func (p *Profile) ownAllocation(place uint32) bool {
	return p.Locations[place].Category != eventlog.CategoryHaskell && rtsAllocates[p.Symbols.Bindings[p.Owner(place)].Name] != ""
}
