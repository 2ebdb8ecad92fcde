package uprobe

import (
	"errors"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sync/errgroup"
)

// Site is the place of a probe in a file.
type Site struct {
	Offset uint64 // in the file
	Cookie uint64 // that the BPF program is given
}

// Probes are attached probes in one process. The kernel removes them when the process ends.
type Probes struct{ links []link.Link }

// perfType is there if the kernel can put probes by perf events: it has their type.
const perfType = "/sys/bus/event_source/devices/uprobe/type"

// Available reports whether the kernel puts probes into programs, and /sys shows it.
func Available() bool {
	_, err := os.Stat(perfType)
	return err == nil || Multi()
}

// Put attaches probes that run a BPF program in a process: all of them by one link if multi is
// set, for which the program has to be made and Multi has to report true, else by a link each.
// It attaches all or none. The error is an *Error.
func Put(file *link.Executable, pid uint32, program *ebpf.Program, multi bool, sites ...Site) (*Probes, error) {
	p := &Probes{}
	put := func(l link.Link, err error) error {
		if err == nil {
			p.links = append(p.links, l)
		}
		return err
	}
	var err error
	if multi {
		many := &link.UprobeMultiOptions{PID: pid}
		for _, s := range sites {
			many.Addresses, many.Cookies = append(many.Addresses, s.Offset), append(many.Cookies, s.Cookie)
		}
		err = put(file.UprobeMulti(nil, program, many))
	} else if _, err = os.Stat(perfType); err == nil { // without it cilium/ebpf tries tracefs, which knows no files by descriptors
		for i := 0; i < len(sites) && err == nil; i++ {
			err = put(file.Uprobe("", program, &link.UprobeOptions{Address: sites[i].Offset, PID: int(pid), Cookie: sites[i].Cookie}))
		}
	}
	if err != nil {
		return nil, errors.Join(&Error{Err: err}, p.Close())
	}
	return p, nil
}

// Close removes the probes. For each link the kernel waits a tenth of a second for running
// programs to end (RCU), so all links are closed in parallel: the first one by the calling thread, which may have a
// higher priority than others.
func (p *Probes) Close() error {
	if len(p.links) == 0 {
		return nil
	}
	var all errgroup.Group
	for _, l := range p.links[1:] {
		all.Go(l.Close)
	}
	err := p.links[0].Close()
	p.links = nil
	return errors.Join(err, all.Wait())
}
