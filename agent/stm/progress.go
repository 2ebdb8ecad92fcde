package stm

import (
	"math"

	"ccagent/agent/procfs"
)

// progress is how far processes have come since they were attached to: what CPU time they have used, ns, and
// how many transactions they have begun by the run-time system's own count, 0 where it has none. What is counted in a
// window stands for progress: by the clock it would stand for too much where a program shares its CPUs, since it runs when the
// agent that has begun a window lets it.
type progress struct{ cpu, begun uint64 }

func (p progress) plus(q progress) progress { return progress{p.cpu + q.cpu, p.begun + q.begun} }

// since is the progress from q to p; none where q is ahead.
func (p progress) since(q progress) progress {
	return progress{p.cpu - min(q.cpu, p.cpu), p.begun - min(q.begun, p.begun)}
}

// latest and earliest are of what either has.
func latest(p, q progress) progress   { return progress{max(p.cpu, q.cpu), max(p.begun, q.begun)} }
func earliest(p, q progress) progress { return progress{min(p.cpu, q.cpu), min(p.begun, q.begun)} }

// progress returns that of all processes, also of those that have ended.
func (s *stm) progress() progress {
	sum := s.gone
	for _, si := range s.images {
		si.look()
		sum = sum.plus(si.last.since(si.first))
	}
	return sum
}

// final is the progress of all processes, up to the end of those that have just ended: how many transactions have begun since their
// count was read last, which goes with the process, is taken from how many began before. If counting was cut off it is that up to there, and
// none of a process that had no probes yet: the next window stands for what that has done.
func (s *stm) final(c *cut) progress {
	here, until := s.gone, s.gone.cpu
	for _, si := range s.images {
		si.look()
		p, used := si.last.since(si.first), si.used()
		if c != nil && !c.ended[si] {
			p = c.reached[si].since(si.first)
			used = p.cpu
		}
		here, until = here.plus(p), until+used
	}
	if until > here.cpu {
		if here.cpu > 0 {
			here.begun += uint64(float64(here.begun) / float64(here.cpu) * float64(until-here.cpu))
		}
		here.cpu = until
	}
	return here
}

// progressOf returns the progress of the processes of images since they began.
func progressOf(images []*image) (sum progress) {
	for _, si := range images {
		if p, ok := si.read(); ok {
			sum = sum.plus(p)
		}
	}
	return sum
}

// look reads how far the image's process is, unless it has ended.
func (si *image) look() {
	if p, ok := si.read(); ok {
		si.last = latest(si.last, p)
	}
}

// used returns the CPU time that the image's process has used since it was attached to, ns: also when it has ended and
// has no memory any more to read its count from.
func (si *image) used() uint64 {
	ns, _ := procfs.ProcessTime(int(si.im.PID))
	return max(ns, si.last.cpu) - si.first.cpu
}

// read returns how far the process is. Both figures are of one moment, or there is none.
func (si *image) read() (p progress, ok bool) {
	if si.counts.Batches != 0 {
		if p.begun, ok = si.readBegun(); !ok {
			return p, false
		}
	}
	p.cpu, ok = procfs.ProcessTime(int(si.im.PID))
	return p, ok
}

// readBegun reads how many transactions have begun in the process: batches of tokens for them that were handed out,
// without the tokens that are left.
func (si *image) readBegun() (uint64, bool) {
	t, m, bias := si.counts, si.im.Memory, si.bias
	const tries = 4 // a batch may be handed out meanwhile
	for range tries {
		out, err := m.Word(t.Batches + bias)
		if err != nil {
			return 0, false
		}
		capabilities, err := t.Read(m, bias)
		if err != nil {
			return 0, false
		}
		var left uint64
		for _, c := range capabilities {
			word, err := m.Word(c + t.Tokens)
			if err != nil {
				return 0, false
			}
			left += word & math.MaxUint32
		}
		if again, err := m.Word(t.Batches + bias); err == nil && again == out && left <= out {
			return out - left, true
		}
	}
	return 0, false
}
