package bpf

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
)

// AllocSite says where in the run-time system an allocation probe is.
type AllocSite = samplerAllocSite

// Sites of allocation probes, as SampleHeader.Site tells them. SiteEnd has no
// samples but a RecordAllocated.
const (
	SiteEnd     = samplerAllocSiteSITE_NONE
	SiteNursery = samplerAllocSiteSITE_NURSERY
	SiteBlock   = samplerAllocSiteSITE_BLOCK
	SiteLarge   = samplerAllocSiteSITE_LARGE
	AllocSites  = samplerAllocSiteALLOC_SITES
)

var sitePrograms = [AllocSites]string{
	SiteEnd:     samplerProgOnProgramEnd,
	SiteNursery: samplerProgOnNurseryFull,
	SiteBlock:   samplerProgOnBlockFull,
	SiteLarge:   samplerProgOnLargeObject,
}

// AllocationPrograms loads the programs that run at the allocation probes, in the
// target's own code, by their site. If multi is set they are made for links of many probes,
// which the kernel is quicker to undo. The sampler owns them.
func (s *Sampler) AllocationPrograms(event int, multi bool) (programs [AllocSites]*ebpf.Program, err error) {
	var errs [AllocSites]error
	var loads sync.WaitGroup
	for site, name := range sitePrograms {
		loads.Go(func() { programs[site], errs[site] = s.load(name, event, multi, &s.probes) })
	}
	loads.Wait()
	return programs, errors.Join(errs[:]...)
}

// AllocAccount is what the probes of a program image have counted.
type AllocAccount = samplerAllocAccount

// OpenAccount makes the allocation probes of the image count, and sample.
func (s *Sampler) OpenAccount(generation uint32) error {
	err := s.maps.AllocAccounts.Update(generation, &AllocAccount{}, ebpf.UpdateNoExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("open an account of allocation: %w", err)
	}
	return nil
}

// CloseAccount forgets an image's counts. Forgetting an unknown one is no error.
func (s *Sampler) CloseAccount(generation uint32) error {
	if err := s.maps.AllocAccounts.Delete(generation); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("close an account of allocation: %w", err)
	}
	return nil
}

// Account gives what the probes of an image have counted so far.
func (s *Sampler) Account(generation uint32) (a AllocAccount, err error) {
	if err := s.maps.AllocAccounts.Lookup(generation, &a); err != nil {
		return a, fmt.Errorf("read an account of allocation: %w", err)
	}
	return a, nil
}

// SetKeep makes events sample a random part of their overflows, in 0..1. The
// weight of the others is added to that of those that are.
func (s *Sampler) SetKeep(part float64) error {
	keep := uint32(math.MaxUint32)
	if part < 1 {
		keep = uint32(part * math.MaxUint32)
	}
	if err := s.tellWalks(unsafe.Offsetof(samplerWalk{}.Keep), keep); err != nil {
		return fmt.Errorf("set the density of samples: %w", err)
	}
	return nil
}
