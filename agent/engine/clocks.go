package engine

import (
	"errors"

	"ccagent/agent/process"
	"ccagent/agent/procfs"
)

// cpuClocks are those of all images, kept open: the CPU time of each is read many times
// a second.
type cpuClocks map[uint32]imageClock // by process

type imageClock struct {
	incarnation uint32           // of the image
	clock       *procfs.CPUClock // nil once it is gone
}

// used is the CPU time of an image's process, in ns; 0 once it is gone.
func (cs cpuClocks) used(pid uint32, im *process.Image) uint64 {
	c, known := cs[pid]
	fresh := !known || c.incarnation != im.Incarnation
	if fresh {
		cs.drop(c)
		clock, _ := procfs.OpenCPUClock(int(pid)) // it may be gone already
		c = imageClock{im.Incarnation, clock}
		cs[pid] = c
	}
	if c.clock == nil {
		return 0
	}
	used, ended, ok := c.clock.Used()
	// The number of one that had ended before may be another's.
	if !ok || fresh && im.Exited && !ended {
		cs.drop(c)
		cs[pid] = imageClock{incarnation: im.Incarnation}
		return 0
	}
	return used
}

func (cpuClocks) drop(c imageClock) error {
	if c.clock == nil {
		return nil
	}
	return c.clock.Close()
}

func (cs cpuClocks) Close() error {
	var err error
	for _, c := range cs {
		err = errors.Join(err, cs.drop(c))
	}
	return err
}
