package daemon

import (
	"fmt"
	"time"

	"ccagent/agent/config"
	"ccagent/agent/daemon/control"
	"ccagent/internal/fair"
)

// boost is that a process is sampled more often until a time. It survives that the process is taken in anew, as
// when the configuration is read again, but not its exec or end.
type boost struct {
	by    uint32 // user
	rate  uint64 // Hz, as asked for
	until time.Time
}

const (
	// maxBoosts bounds the processes that are boosted at a time, of which one user other than root asks for half at most, and longestBoost the time: others' CPUs are
	// interrupted too meanwhile.
	maxBoosts    = 8
	longestBoost = time.Hour
)

// boost has a process sampled more often, or ends that.
func (d *Daemon) boost(peer control.Peer, r control.Request) error {
	if err := d.engine.Drain(); err != nil { // the process may have ended
		return err
	}
	p := d.procs[r.PID]
	if p == nil || !peer.Sees(p.UID) {
		return fmt.Errorf("process %d is not sampled (ccagent ps lists what is)", r.PID)
	}
	if r.For == 0 {
		return d.endBoost(p)
	}
	if err := config.CheckRate(r.Rate); err != nil {
		return err
	}
	length := time.Duration(min(max(r.For, 0), 2*longestBoost.Seconds()) * float64(time.Second))
	own := 0 // of the others
	for pid, b := range d.boosts {
		if b.by == peer.UID && pid != p.PID {
			own++
		}
	}
	switch _, again := d.boosts[p.PID]; {
	case length < time.Second || length > longestBoost:
		return fmt.Errorf("a boost is for 1s to %s", longestBoost)
	case !again && len(d.boosts) >= maxBoosts:
		return fmt.Errorf("%d processes are boosted already (ccagent ps lists them)", len(d.boosts))
	case peer.UID != 0 && fair.Room(maxBoosts, 0, own, 1) != nil:
		return fmt.Errorf("%d processes are boosted for you already (ccagent ps lists them)", own)
	}
	b := boost{by: peer.UID, rate: r.Rate, until: time.Now().Add(length)}
	if err := d.startBoost(p, b); err != nil {
		return err
	}
	d.boosts[p.PID] = b
	return nil
}

func (d *Daemon) startBoost(p *proc, b boost) error {
	const percent = 1. / 100
	return d.engine.Boost(p.image, b.rate, d.config.BoostOverhead*percent)
}

func (d *Daemon) endBoost(p *proc) error {
	delete(d.boosts, p.PID)
	return d.engine.EndBoost(p.image)
}

// endBoosts ends the boosts whose time is over. Records were drained just now.
func (d *Daemon) endBoosts(now time.Time) error {
	for pid, b := range d.boosts {
		if now.Before(b.until) {
			continue
		}
		delete(d.boosts, pid)
		if p := d.procs[pid]; p != nil {
			if err := d.endBoost(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// renewBoosts boosts the processes again that were taken in anew, until their time is over.
func (d *Daemon) renewBoosts() error {
	if len(d.boosts) == 0 {
		return nil
	}
	if err := d.engine.Drain(); err != nil {
		return err
	}
	for pid, b := range d.boosts {
		p := d.procs[pid]
		if p == nil { // a rule excludes it by now
			delete(d.boosts, pid)
			continue
		}
		if err := d.startBoost(p, b); err != nil {
			return err
		}
	}
	return nil
}

// boosted is a process's boost as the protocol has it, nil if it has none.
func (d *Daemon) boosted(p *proc) *control.Boost {
	b, ok := d.boosts[p.PID]
	rate, is := d.engine.Boosted(p.image)
	if !ok || !is {
		return nil
	}
	return &control.Boost{Rate: rate, Asked: b.rate, Left: max(time.Until(b.until).Seconds(), 0), UID: b.by}
}
