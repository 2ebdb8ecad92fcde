//go:build linux && cgo

package replay

import (
	"fmt"
	"slices"

	"ccagent/bpf"
	"ccagent/bpf/replay/oracle"
)

// Differences lists the errors in a record: frames that are wrong, missing or too many,
// counts of folded and skipped frames that do not add up, a wrong stop reason, thread or
// flag. If it is empty every recorded frame is true, and every true frame is recorded,
// folded, or among the words skipped.
func Differences(r *Record, truth *oracle.Truth) []string {
	if truth.Pending != 0 && len(r.Frames) > 1 && r.Frames[1] == (Frame{KindUpdate, truth.Pending}) {
		with := *truth
		pending := oracle.Frame{Kind: "update", Address: truth.Pending}
		with.Frames = slices.Concat(truth.Frames[:1], []oracle.Frame{pending}, truth.Frames[1:])
		with.Pending = 0
		if len(Differences(r, &with)) == 0 {
			return nil
		}
	}
	c := comparison{record: r, truth: truth}
	c.frames()
	c.header()
	return c.found
}

type comparison struct {
	record *Record
	truth  *oracle.Truth
	at     int // the next true frame
	folded int
	found  []string
}

func (c *comparison) report(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *comparison) matches(f Frame, at int) bool {
	t := c.truth.Frames[at]
	return f.Kind.String() == t.Kind && f.Address == t.Address&bpf.FrameAddressMask
}

func (c *comparison) frames() {
	frames, truth := c.record.Frames, c.truth.Frames
	for j := 0; j < len(frames); j++ {
		switch f := frames[j]; f.Kind {
		case KindFolded:
			last := j+1 == len(frames) || frames[j+1].Kind == KindSkipped
			if !c.unfold(int(f.Address), last) {
				return
			}
		case KindSkipped:
			rest := frames[j+1:]
			resume := len(truth) - len(rest)
			if resume < c.at {
				c.report("frames after the skipped part: %d, but only %d true ones are left", len(rest), len(truth)-c.at)
				return
			}
			c.skipped(resume)
			c.at = resume
		default:
			switch {
			case c.at == len(truth):
				c.report("frame %d is too many: %s %#x", j, f.Kind, f.Address)
				return
			case !c.matches(f, c.at):
				t := truth[c.at]
				c.report("frame %d is %s %#x, but the truth has %s %#x as its frame %d", j, f.Kind, f.Address, t.Kind, t.Address, c.at)
				return
			}
			c.at++
		}
	}
	if c.at != len(truth) {
		c.report("%d true frames are missing at the root, from %s %#x on", len(truth)-c.at, truth[c.at].Kind, truth[c.at].Address)
	}
	if c.folded != int(c.record.FoldedFrames) {
		c.report("%d frames said to be folded, %d were", c.record.FoldedFrames, c.folded)
	}
}

// unfold skips the true frames that a cycle of the last period frames stands for. A walk
// that ends in a cycle may end in the middle of a copy.
func (c *comparison) unfold(period int, last bool) bool {
	truth := c.truth.Frames
	if period < 1 || period > c.at {
		c.report("%d frames said to be folded, only %d came before", period, c.at)
		return false
	}
	n := 0
	for c.at+n < len(truth) && truth[c.at+n].Kind == truth[c.at+n-period].Kind &&
		truth[c.at+n].Address == truth[c.at+n-period].Address {
		n++
	}
	want := n - n%period
	if last {
		want = int(c.record.FoldedFrames) - c.folded
	}
	if want > n {
		c.report("a cycle of %d frames is said to be left out %d frames long; it is %d", period, want, n)
		return false
	}
	c.at += want
	c.folded += want
	return true
}

// skipped checks the number of words between the current frame and the one where the record
// continues.
func (c *comparison) skipped(resume int) {
	truth := c.truth.Frames
	if resume >= len(truth) || truth[resume].Sp == 0 {
		return // a golden stack, which has no addresses
	}
	var words uint64
	for i := c.at; i < resume; i++ {
		if truth[i].Kind == "underflow" {
			words += 2
		} else {
			words += (truth[i+1].Sp - truth[i].Sp) / 8
		}
	}
	if words != c.record.SkippedWords {
		c.report("%d words said to be skipped, %d were", c.record.SkippedWords, words)
	}
}

func (c *comparison) header() {
	r, t := c.record, c.truth
	stop := Stop(r.Stop)
	if t.Top == oracle.TopNone {
		if stop != StopNoHaskell {
			c.report("stop reason is %q, but there is no Haskell stack", stop)
		}
	} else if stop != StopRoot && stop != StopRecovered {
		c.report("stop reason is %q", stop)
	}
	if r.Tso != t.TSO {
		c.report("thread is %d, want %d", r.Tso, t.TSO)
	}
	capability := t.Capability
	if capability < 0 {
		capability = noCapability
	}
	if int(r.Capability) != capability {
		c.report("capability is %d, want %d", r.Capability, capability)
	}
	has := map[Kind]bool{}
	for _, f := range r.Frames {
		has[f.Kind] = true
	}
	flag := func(bit uint16, name string, want bool) {
		if (r.Flags&bit != 0) != want {
			c.report("flag %q is %v", name, !want)
		}
	}
	flag(FlagContext, "context", has[KindContext])
	flag(FlagFolded, "folded", has[KindFolded])
	flag(FlagViaC, "via C", has[KindC] && !has[KindContext] && t.Top != oracle.TopNone)
	if r.Flags&FlagTopScanned != 0 && t.Top != oracle.TopScan {
		c.report("flag %q is true, but the top is known by %s", "top scanned", t.Top)
	}
}
