package cpu

import (
	"ccagent/agent/process"
	"ccagent/perf"
)

// spent is what samples have cost a process.
type spent struct {
	walks      uint64  // that the walker took, ns
	interrupts float64 // that brought them, ns
}

// spend notes what a sample has cost its process, where each has a log of its own.
func (s *cpu) spend(im *process.Image, e *event, walkNs uint32, onTick bool) {
	if !s.host.OwnLogs {
		return
	}
	of := s.spent[im.Incarnation]
	of.walks += uint64(walkNs)
	s.walked += uint64(walkNs)
	if kind := e.event.Interrupt(); kind != perf.NoInterrupt && !onTick { // a tick comes anyway
		of.interrupts += s.host.Budget.Costs.Interrupt(kind)
	}
	if s.spent == nil {
		s.spent = map[uint32]spent{}
	}
	s.spent[im.Incarnation] = of
}

// CostOf is what samples have cost a process so far, ns, where each has a log of its own: the walks that it was
// sampled by, with what the programs take around them on average, and the interrupts.
func (s *cpu) CostOf(im *process.Image) uint64 {
	of := s.spent[im.Incarnation]
	around := 1.0
	if c, err := s.Cost(); err == nil {
		around = max(float64(c.Samples.Ns)/float64(max(s.walked, 1)), 1)
	}
	return uint64(float64(of.walks)*around + of.interrupts)
}

// Detach forgets what a process has cost that has ended.
func (s *cpu) Detach(im *process.Image, _ uint64) error {
	delete(s.spent, im.Incarnation)
	return nil
}
