package rts

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf/link"

	"ccagent/agent/overhead"
	"ccagent/agent/rtsites"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
)

// group is the state of a group's probes.
type group struct {
	sites  []rtsites.Site
	links  []link.Link
	bucket *overhead.Bucket // fills with the time that passes
	at     uint64           // until when, ns
	out    uint64           // for how long the probes have been out, ns
	outAt  uint64           // since when they are, 0 while they are in place
	cost   float64          // of all hits, ns
	hit    float64          // of one, ns
	counts bpf.RTSCounts
	failed error // they could not be put back
}

// put puts a group's probes in.
func (p *Probes) put(g *group) error {
	// By the file that is held open: whatever the path names by now.
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", p.image.RTS.File.Fd()))
	if err != nil {
		return &uprobe.Error{Err: err}
	}
	many := &link.UprobeMultiOptions{PID: p.image.PID}
	for _, s := range g.sites {
		offset, ok := p.image.RTS.FileOffset(s.Addr)
		if !ok {
			return &rtsites.MissingError{What: "code"}
		}
		many.Addresses = append(many.Addresses, offset)
		many.Cookies = append(many.Cookies, bpf.RTSCookie(s.Probe, s.AtCall))
	}
	put := func(l link.Link, err error) error {
		if err == nil {
			g.links = append(g.links, l)
		}
		return err
	}
	if p.multi {
		err = put(exe.UprobeMulti(nil, p.program.Program(), many))
	} else {
		for i := 0; i < len(many.Addresses) && err == nil; i++ {
			err = put(exe.Uprobe("", p.program.Program(), &link.UprobeOptions{
				Address: many.Addresses[i], PID: int(many.PID), Cookie: many.Cookies[i]}))
		}
	}
	if err != nil {
		return errors.Join(&uprobe.Error{Err: err}, g.take())
	}
	return nil
}

// take takes a group's probes out. The kernel takes a tenth of a second for a link,
// in which it waits for whoever may be in the program; the code is as it was before.
func (g *group) take() error {
	errs := make([]error, len(g.links))
	var all sync.WaitGroup
	for i, l := range g.links {
		all.Go(func() { errs[i] = l.Close() })
	}
	all.Wait()
	g.links = nil
	return errors.Join(errs...)
}
