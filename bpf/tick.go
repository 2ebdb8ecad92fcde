package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// SampleOnTick is set in SampleHeader.Flags of samples that were taken at the kernel's tick.
const SampleOnTick = uint16(samplerSampleFlagsSAMPLE_ON_TICK)

// Tick says how on_tick recognises the kernel's tick: distances from a CPU's hrtimer_bases, in
// bytes, of the tick's timer and of the pointer to the registers that an interrupt found.
type Tick struct {
	Timer, Regs int64
	Period      time.Duration // from one tick to the next
	// Share: one tick in so many is sampled.
	Share uint32
}

// TickProgram is the program that runs at the kernel's ticks, with walks of its own: it
// interrupts the programs at probes.
type TickProgram struct {
	program *ebpf.Program
	link    link.Link // nil while it does not run
}

// TickProgram loads it. It samples as the event with that index; the sampler owns it.
func (s *Sampler) TickProgram(event int, t Tick) (*TickProgram, error) {
	spec := s.spec.Maps[samplerMapWalks].Copy()
	spec.MaxEntries = uint32(s.config.CPUs)
	walks, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("create the tick's walks: %w", err)
	}
	defer walks.Close() // the program keeps it
	memory, err := walks.Memory()
	if err != nil {
		return nil, fmt.Errorf("map the tick's walks: %w", err)
	}
	s.tick = &walkMemory{memory, int64(s.config.CPUs)}
	s.loaded.Lock()
	s.walks = append(s.walks, s.tick)
	s.loaded.Unlock()
	if err := errors.Join(s.tick.number(), s.SetTickPart(1)); err != nil {
		return nil, err
	}
	p, err := s.load(samplerProgOnTick, event, &s.others, func(c *ebpf.CollectionSpec, maps map[string]*ebpf.Map) error {
		c.Maps[samplerMapWalks].MaxEntries = spec.MaxEntries
		maps[samplerMapWalks] = walks
		return errors.Join(
			c.Variables[samplerVarTickTimer].Set(t.Timer),
			c.Variables[samplerVarTickRegs].Set(t.Regs),
			c.Variables[samplerVarTickNs].Set(uint64(t.Period)),
			c.Variables[samplerVarTickShare].Set(t.Share))
	})
	if err != nil {
		return nil, err
	}
	return &TickProgram{program: p}, nil
}

// BesideTickProgram is EventProgram of the event that is sampled beside the tick.
func (s *Sampler) BesideTickProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnEvent, event, &s.programs, func(c *ebpf.CollectionSpec, _ map[string]*ebpf.Map) error {
		return c.Variables[samplerVarWithAge].Set(uint8(1))
	})
}

// SetTickPart makes on_tick sample only a random part of the ticks, in 0..1.
func (s *Sampler) SetTickPart(part float64) error { return s.tick.setKeep(part) }

// Start has the program run.
func (t *TickProgram) Start() (err error) {
	if t.link, err = link.AttachTracing(link.TracingOptions{Program: t.program}); err != nil {
		return fmt.Errorf("sample at the kernel's tick: %w", err)
	}
	return nil
}

// Stop ends that. What it sampled stays in the ring buffer.
func (t *TickProgram) Stop() error {
	if t.link == nil {
		return nil
	}
	err := t.link.Close()
	t.link = nil
	return err
}
