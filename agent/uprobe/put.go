package uprobe

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sync/errgroup"
)

// Site is where a probe is put.
type Site struct {
	Offset uint64 // in the file
	Cookie uint64 // that the BPF program is given
}

// Probes are probes in one process. They go with it.
type Probes struct{ links []link.Link }

// Put puts probes that run a program into a process: by one link if the program was made for
// links of many probes, which Multi has to allow, else by one each. All are put, or none. The
// error is an *Error.
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
	} else {
		for i := 0; i < len(sites) && err == nil; i++ {
			err = put(file.Uprobe("", program, &link.UprobeOptions{Address: sites[i].Offset, PID: int(pid), Cookie: sites[i].Cookie}))
		}
	}
	if err != nil {
		return nil, errors.Join(&Error{Err: err}, p.Close())
	}
	return p, nil
}

// Close takes the probes out; the code is as it was before. The kernel takes a tenth of a
// second for each link, in which it waits for whoever may be in the program, so all are taken
// out at once.
func (p *Probes) Close() error {
	var all errgroup.Group
	for _, l := range p.links {
		all.Go(l.Close)
	}
	p.links = nil
	return all.Wait()
}
