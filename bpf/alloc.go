package bpf

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sync/errgroup"
)

// AllocSite says where in the run-time system an allocation probe is.
type AllocSite = samplerAllocSite

// Sites of allocation probes, in SampleHeader.Site. At SiteEnd no samples are taken, only a
// RecordAllocated is sent.
const (
	SiteEnd     = samplerAllocSiteSITE_NONE
	SiteNursery = samplerAllocSiteSITE_NURSERY
	SiteBlock   = samplerAllocSiteSITE_BLOCK
	SiteLarge   = samplerAllocSiteSITE_LARGE
	AllocSites  = samplerAllocSiteALLOC_SITES
)

// AllocOrigin says what came to an allocation probe.
type AllocOrigin = samplerAllocOrigin

// Origins of samples of allocation, in SampleHeader.Origin.
const (
	OriginHeapCheck  = samplerAllocOriginORIGIN_HEAP_CHECK
	OriginPrimop     = samplerAllocOriginORIGIN_PRIMOP
	OriginFork       = samplerAllocOriginORIGIN_FORK
	OriginStackCheck = samplerAllocOriginORIGIN_STACK_CHECK
)

var sitePrograms = [AllocSites]string{
	SiteEnd:     samplerProgOnProgramEnd,
	SiteNursery: samplerProgOnNurseryFull,
	SiteBlock:   samplerProgOnBlockFull,
	SiteLarge:   samplerProgOnLargeObject,
}

// AllocationPrograms loads the programs of the allocation probes, indexed by AllocSite. If
// multi is set they are made for links of many probes, which the kernel detaches faster. The
// sampler owns them.
func (s *Sampler) AllocationPrograms(event int, multi bool) (programs [AllocSites]*ebpf.Program, err error) {
	attach := func(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) error {
		if multi {
			for _, p := range spec.Programs {
				p.AttachType = ebpf.AttachTraceUprobeMulti
			}
		}
		maps[samplerMapAtAllocation] = s.maps.AtAllocation
		return nil
	}
	// The programs of sites are small: they are loaded while the kernel verifies the common one, to which they jump.
	var loads errgroup.Group
	for site, name := range sitePrograms {
		loads.Go(func() (err error) {
			programs[site], err = s.load(name, event, &s.probes, attach)
			return err
		})
	}
	common, err := s.load(samplerProgOnAllocation, event, &s.others, attach)
	if err == nil {
		if err = s.maps.AtAllocation.Put(uint32(0), common); err != nil {
			err = fmt.Errorf("load allocation probes: %w", err)
		}
	}
	return programs, errors.Join(err, loads.Wait())
}

// AllocAccount holds the counts of one process image's allocation probes.
type AllocAccount = samplerAllocAccount

// OpenAccount creates the counts of a process image; its allocation probes count and sample
// from then on.
func (s *Sampler) OpenAccount(incarnation uint32) error {
	err := s.maps.AllocAccounts.Update(incarnation, &AllocAccount{}, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("open an account of allocation: %w", err)
	}
	return nil
}

// CloseAccount deletes an image's counts. It is no error if there are none.
func (s *Sampler) CloseAccount(incarnation uint32) error {
	if err := s.maps.AllocAccounts.Delete(incarnation); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("close an account of allocation: %w", err)
	}
	return nil
}

// Account reads the current counts of an image's allocation probes. It is read often, so by plain pointers: ebpf finds out what else it
// is given by reflection, which takes longer than the system call.
func (s *Sampler) Account(incarnation uint32) (a AllocAccount, err error) {
	if err := s.maps.AllocAccounts.Lookup(unsafe.Pointer(&incarnation), unsafe.Pointer(&a)); err != nil {
		return a, fmt.Errorf("read an account of allocation: %w", err)
	}
	return a, nil
}

// SetKeep makes events sample only a random part of their overflows, in 0..1. The weight of
// a skipped overflow is added to the next sample of its event on that CPU.
func (s *Sampler) SetKeep(part float64) error { return s.walks[0].setKeep(part) }
