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

// maxKallsyms bounds what is kept of /proc/kallsyms.
const maxKallsyms = 1 << 22

type kernelSymbol struct {
	addr uint64
	name string
}

// readKallsyms reads code symbols from /proc/kallsyms. Where the reader may
// not see addresses all of them are 0, and none is kept.
func readKallsyms(r io.Reader) []kernelSymbol {
	var syms []kernelSymbol
	s := bufio.NewScanner(r)
	for s.Scan() && len(syms) < maxKallsyms {
		f := strings.Fields(s.Text())
		if len(f) < 3 || len(f[1]) != 1 || !strings.Contains("tTwW", f[1]) {
			continue
		}
		addr, err := strconv.ParseUint(f[0], 16, 64)
		if err != nil || addr == 0 {
			continue
		}
		syms = append(syms, kernelSymbol{addr, f[2]})
	}
	slices.SortStableFunc(syms, func(a, b kernelSymbol) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return 0
	})
	return syms
}

// kernel resolves kernel addresses. Symbols there have no sizes; the kernel's
// own rule is that one reaches to the next.
func (r *run) kernel() error {
	if len(r.job.Kernel) == 0 {
		return nil
	}
	var syms []kernelSymbol
	if r.job.Kallsyms != nil {
		syms = readKallsyms(r.job.Kallsyms)
	}
	if len(syms) == 0 {
		r.problem("kernel addresses have no names: /proc/kallsyms shows none (sysctl kernel.kptr_restrict, CAP_SYSLOG)")
	}
	addrs := slices.Clone(r.job.Kernel)
	slices.SortFunc(addrs, func(a, b Address) int {
		if a.Addr < b.Addr {
			return -1
		}
		return int(min(a.Addr-b.Addr, 1))
	})
	addrs = slices.CompactFunc(addrs, func(a, b Address) bool { return a.Addr == b.Addr })
	out := eventlog.Locations{}
	for i, a := range addrs {
		l := eventlog.Location{Addr: a.Addr, Category: eventlog.CategoryKernel}
		at := a.lookup()
		if j := sort.Search(len(syms), func(j int) bool { return syms[j].addr > at }); j > 0 {
			var err error
			if l.Binding, err = r.bindings.foreign(0, syms[j-1].name, eventlog.CategoryKernel); err != nil {
				return err
			}
			l.Quality, l.Offset = eventlog.QualityExact, at-syms[j-1].addr
		}
		r.count(&l)
		out.Locations = append(out.Locations, l)
		if len(out.Locations) == perEvent || i == len(addrs)-1 {
			if err := r.emit(&out); err != nil {
				return err
			}
			out.Locations = out.Locations[:0]
		}
	}
	return nil
}
