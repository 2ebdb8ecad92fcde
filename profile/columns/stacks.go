package columns

import "ccagent/eventlog"

// stackTable collects the stacks of samples: nodes, sites, and cost-centre stacks.
type stackTable struct {
	p     *Log
	nodes nodeTable
	sites siteTable
	exact exactState
}

// node returns the index of a sample's node.
func (t *stackTable) node(id uint32) uint32 {
	node, ok := t.nodes.resolve(id)
	if !ok {
		t.p.Accounting.Undefined.Nodes++
		return 0
	}
	return node
}

// site returns the site of a sample with a node. last is as intern takes it.
func (t *stackTable) site(s *eventlog.PackedSample, node uint32, last lastSite) uint32 {
	id := t.sites.intern(Site{node, s.Stop, s.Flags&eventlog.SampleInKernel != 0, s.Centres}, last)
	if s.Centres != 0 {
		t.centreSamples(s.Centres, 1)
	}
	if s.SkippedWords != 0 {
		t.sites.skipped(id, s.SkippedWords)
	}
	if s.FoldedFrames != 0 {
		t.sites.fold(id, s.FoldedFrames)
	}
	return id
}
