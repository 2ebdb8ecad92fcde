package rts

import (
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
)

// group is the state of a group's probes.
type group struct {
	sites  []rtsites.Site
	probes *uprobe.Probes   // nil while they are out
	bucket *overhead.Bucket // fills with the time that passes
	at     uint64           // until when, ns
	out    uint64           // for how long the probes have been out, ns
	outAt  uint64           // since when they are, 0 while they are in place
	cost   float64          // of all hits, ns
	hit    float64          // of one, ns
	counts bpf.RTSCounts
	failed error // they could not be put back
}

// put places a group's probes.
func (p *Probes) put(g *group) (err error) {
	at := make([]process.Probe, len(g.sites))
	for i, s := range g.sites {
		at[i] = process.Probe{Addr: s.Addr, Cookie: bpf.RTSCookie(s.Probe, s.AtCall)}
	}
	g.probes, err = p.image.Put(p.program.Program(), p.multi, at...)
	return err
}

// take removes a group's probes.
func (g *group) take() error {
	if g.probes == nil {
		return nil
	}
	err := g.probes.Close()
	g.probes = nil
	return err
}
