package e2e

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Page faults and system calls are attributed to the Haskell code that caused them, with the
// kernel's frames on top of it.
func TestKernelWorkBelongsToHaskell(t *testing.T) {
	exe := testprog.Build(t, "kernel", testprog.Options{})
	compileCalls(t, exe, "1")
	log, _ := record(t, []string{"--kernel", "-e", "cpu-clock", "-F", "1999", "--max-overhead", "0"}, exe, "20")
	l := readLog(t, log)
	l.wantWhole(t)
	inKernel, complete, attributed, framed := 0, 0, 0, 0
	by := map[string]int{}
	for _, s := range l.samples {
		if s.Flags&eventlog.SampleInKernel == 0 || s.Stop == eventlog.StopNoHaskell || s.Stop == eventlog.StopNoUserContext {
			continue
		}
		inKernel++
		frames := l.frames(s)
		if s.Stop.Complete() {
			complete++
		} else {
			t.Logf("a sample in the kernel, %d frames, ends by %s", len(frames), s.Stop)
		}
		if len(frames) > 0 && frames[0].Kind == eventlog.FrameKernel {
			framed++
		}
		for _, f := range frames {
			if f.Kind == eventlog.FrameKernel {
				continue
			}
			if name := l.source(f); name == "touch" || name == "ask" || name == "main" {
				by[name]++
				attributed++
				break
			}
		}
	}
	if inKernel < 100 {
		t.Fatalf("%d samples in the kernel for Haskell code", inKernel)
	}
	wantShareAbove(t, "samples in the kernel with whole stacks", complete, inKernel, 0.99)
	wantShareAbove(t, "samples in the kernel with kernel frames", framed, inKernel, 0.99)
	wantShareAbove(t, "samples in the kernel with their cause", attributed, inKernel, 0.99)
	for _, name := range []string{"touch", "ask"} {
		if by[name] < 10 {
			t.Errorf("%d samples in the kernel for %s, of %d", by[name], name, inKernel)
		}
	}
}
