package main

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// There is a loop on each CPU, which gives way to everything else, until it is stopped.
func TestPad(t *testing.T) {
	loops, stop, err := pad()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	if len(loops) != cpus.Count() {
		t.Fatalf("%d loops on %d CPUs", len(loops), cpus.Count())
	}
	var seen []unix.CPUSet
	for _, loop := range loops {
		pid := loop.Process.Pid
		// chrt and taskset, which become the loop, set this in turn.
		deadline := time.Now().Add(time.Minute)
		for {
			attr, err := unix.SchedGetAttr(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			var of unix.CPUSet
			if err := unix.SchedGetaffinity(pid, &of); err != nil {
				t.Fatal(err)
			}
			if attr.Policy == unix.SCHED_IDLE && of.Count() == 1 {
				if slices.Contains(seen, of) {
					t.Error("two loops on one CPU")
				}
				seen = append(seen, of)
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("policy %d on %d CPUs, want SCHED_IDLE on one", attr.Policy, of.Count())
			}
		}
	}
	stop()
	for _, loop := range loops {
		if p, err := os.FindProcess(loop.Process.Pid); err == nil && !errors.Is(p.Signal(unix.Signal(0)), os.ErrProcessDone) {
			t.Errorf("the loop %d runs on", loop.Process.Pid)
		}
	}
}
