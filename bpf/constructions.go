package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// ConstructionCookie is the cookie of the probe at a place of a process image that makes values of a constructor, by the place's number.
// byCaller is set for places whose values are counted by the return address on top of the stack.
func ConstructionCookie(incarnation, place uint32, byCaller bool) uint64 {
	cookie := uint64(incarnation)<<constructionIncarnationShift | uint64(place)
	if byCaller {
		cookie |= constructionByCaller
	}
	return cookie
}

const (
	constructionIncarnationShift = 32
	constructionByCaller         = 1 << 31
)

// ConstructionKey identifies a count of values: the cookie of a place, and the return address of the caller, 0 where callers are not counted apart.
type ConstructionKey = samplerConstructionKey

// PlaceOf is the number of its place.
func PlaceOf(k ConstructionKey) uint32 { return uint32(k.Cookie) &^ constructionByCaller }

// ConstructionProgram loads the program that runs where values of constructors are made. If multi is set it is made for links of
// many probes. It samples them as the event with that index: SampleHeader.Period is the place's cookie, Large the caller, Total the value's number of these. The sampler
// owns it.
func (s *Sampler) ConstructionProgram(event int, multi bool) (*ebpf.Program, error) {
	return s.load(samplerProgOnConstruction, event, &s.others, func(spec *ebpf.CollectionSpec, _ map[string]*ebpf.Map) error {
		if multi {
			spec.Programs[samplerProgOnConstruction].AttachType = ebpf.AttachTraceUprobeMulti
		}
		return nil
	})
}

// ControlConstructions says whether values are counted, and begins a round, in which so many samples of each place are taken in a row, and further
// ones of fewer and fewer.
func (s *Sampler) ControlConstructions(open bool, round, draws uint64) error {
	c := samplerConstructionWindow{Round: round, Draws: draws}
	if open {
		c.Open = 1
	}
	if err := s.maps.ConstructionControl.Put(uint32(0), c); err != nil {
		return fmt.Errorf("set the window of constructions: %w", err)
	}
	return nil
}

// OpenConstruction creates the count of a place.
func (s *Sampler) OpenConstruction(cookie uint64) error {
	if err := s.maps.ConstructionSites.Put(ConstructionKey{Cookie: cookie}, samplerConstructionSite{}); err != nil {
		return fmt.Errorf("open an account of constructions: %w", err)
	}
	return nil
}

// Constructions reads how many values were made in a process image, by place and caller.
func (s *Sampler) Constructions(incarnation uint32) (map[ConstructionKey]uint64, error) {
	made := map[ConstructionKey]uint64{}
	var key ConstructionKey
	var site samplerConstructionSite
	all := s.maps.ConstructionSites.Iterate()
	for all.Next(&key, &site) {
		if uint32(key.Cookie>>constructionIncarnationShift) == incarnation {
			made[key] = site.Made
		}
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read accounts of constructions: %w", err)
	}
	return made, nil
}

// CloseConstructions deletes the counts of a process image.
func (s *Sampler) CloseConstructions(incarnation uint32) error {
	made, err := s.Constructions(incarnation)
	for key := range made {
		if gone := s.maps.ConstructionSites.Delete(key); gone != nil && !errors.Is(gone, ebpf.ErrKeyNotExist) {
			err = errors.Join(err, fmt.Errorf("close an account of constructions: %w", gone))
		}
	}
	return err
}
