package symbolize

import (
	"bufio"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"ccagent/eventlog"
)

// maxKallsyms bounds what is read of /proc/kallsyms, in lines.
const maxKallsyms = 1 << 22

// KernelAddress is an address in the kernel's code, with the symbol that it lies in.
type KernelAddress struct {
	Address
	Symbol string // empty if not known
	Offset uint64 // from the symbol, of what the address stands for
}

// NameKernel names addresses by /proc/kallsyms. Where the reader may not see addresses
// there all of them are 0, and none is believed. Symbols there have no sizes; the
// kernel's own rule is that one reaches to the next.
func NameKernel(kallsyms io.Reader, addrs []Address) []KernelAddress {
	addrs = slices.Clone(addrs)
	slices.SortFunc(addrs, func(a, b Address) int {
		if a.Addr < b.Addr {
			return -1
		}
		return int(min(a.Addr-b.Addr, 1))
	})
	addrs = slices.CompactFunc(addrs, func(a, b Address) bool { return a.Addr == b.Addr })
	out := make([]KernelAddress, len(addrs))
	for i, a := range addrs {
		out[i].Address = a
	}
	if kallsyms == nil || len(out) == 0 {
		return out
	}
	// Of each address, the symbol that begins the least before it and, unless it is the
	// first, not before the address below it.
	best := make([]uint64, len(out))
	s := bufio.NewScanner(kallsyms)
	for n := 0; s.Scan() && n < maxKallsyms; n++ {
		f := strings.Fields(s.Text())
		if len(f) < 3 || len(f[1]) != 1 || !strings.Contains("tTwW", f[1]) {
			continue
		}
		addr, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil || addr == 0 {
			continue
		}
		i := sort.Search(len(out), func(i int) bool { return out[i].Lookup() >= addr })
		if i < len(out) && addr >= best[i] {
			best[i], out[i].Symbol = addr, f[2]
		}
	}
	for i := range out {
		if i > 0 && best[i] == 0 && best[i-1] != 0 {
			best[i], out[i].Symbol = best[i-1], out[i-1].Symbol
		}
		if best[i] != 0 {
			out[i].Offset = out[i].Lookup() - best[i]
		}
	}
	return out
}

// kernel writes the names of kernel addresses.
func (r *run) kernel() error {
	if len(r.job.Kernel) == 0 {
		return nil
	}
	named := slices.ContainsFunc(r.job.Kernel, func(a KernelAddress) bool { return a.Symbol != "" })
	if !named {
		r.problem("", "kernel addresses have no names: /proc/kallsyms shows none (sysctl kernel.kptr_restrict, CAP_SYSLOG)")
	}
	out := eventlog.Locations{}
	for i, a := range r.job.Kernel {
		l := eventlog.Location{Addr: a.Addr, Category: eventlog.CategoryKernel}
		if a.Symbol != "" {
			var err error
			if l.Binding, err = r.bindings.Foreign(0, a.Symbol, eventlog.CategoryKernel); err != nil {
				return err
			}
			l.Quality, l.Offset = eventlog.QualityExact, a.Offset
		}
		r.count(&l)
		out.Locations = append(out.Locations, l)
		if len(out.Locations) == perEvent || i == len(r.job.Kernel)-1 {
			if err := r.emit(&out); err != nil {
				return err
			}
			out.Locations = out.Locations[:0]
		}
	}
	return nil
}
