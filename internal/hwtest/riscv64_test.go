package hwtest_test

import (
	"testing"

	"ccagent/internal/hwtest"
)

// The choice of the event changes the profile: misses of the data TLB are in the code that
// strides over pages, while most time is spent elsewhere.
func TestEventChangesProfile(t *testing.T) {
	image := kernel(t, "riscv64-6.12")
	files := agentFiles(t, "riscv64")
	files["/bin/workload"] = goBuild(t, "riscv64", "build", "ccagent/internal/hwtest/workload")
	const misses, cycles = "dTLB-load-misses", "cycles"
	// Cycles are the host's; the period is large enough for few interrupts.
	done := boot(t, hwtest.Machine{Arch: "riscv64", Kernel: image}, files, []hwtest.Job{
		doctor,
		{Name: "jit", Argv: []string{hwtest.Guest, "write", "/proc/sys/net/core/bpf_jit_enable", "1"}, Seconds: jobSeconds},
		verify,
		record(misses, []string{"-e", misses, "-c", "1000"}, "/bin/workload", "40"),
		record(cycles, []string{"-e", cycles, "-c", "10000019"}, "/bin/workload", "40"),
		record("missing", []string{"-e", "branch-misses", "-c", "1000"}, "/bin/workload", "1"),
	})
	// Debian's kernel for this architecture starts with the BPF compiler off.
	wantLine(t, done["doctor"].Stdout, "failed", "does not compile BPF programs")
	wantLine(t, done["doctor"].Stdout, "sysctl net.core.bpf_jit_enable=1")
	if r := done["jit"]; r.Status != 0 {
		t.Fatalf("turn the compiler on: %s", r.Stderr)
	}
	logVerifier(t, done["verifier"])
	share := func(event, function string) float64 {
		var stacks stacksJSON
		view(t, &stacks, "stacks", logOf(t, done[event]))
		return stacks.Root.self(function) / stacks.Total
	}
	for _, event := range []string{misses, cycles} {
		var hot hotJSON
		view(t, &hot, "hot", logOf(t, done[event]))
		t.Logf("%s: %.3f in main.stride, %.3f in main.spin, of %d samples; %+v", event,
			share(event, "main.stride"), share(event, "main.spin"), hot.Samples, hot.Rows[:min(4, len(hot.Rows))])
	}
	// The rest is the kernel's.
	if stride, spin := share(misses, "main.stride"), share(misses, "main.spin"); stride < 0.7 || stride < 20*spin {
		t.Errorf("%s: main.stride has %.3f, main.spin %.3f", misses, stride, spin)
	}
	if stride, spin := share(cycles, "main.stride"), share(cycles, "main.spin"); spin < 2*stride {
		t.Errorf("%s: main.stride has %.3f, main.spin %.3f", cycles, stride, spin)
	}
	missing := done["missing"]
	if missing.Status != 125 || len(missing.Files) != 0 {
		t.Errorf("branch-misses: status %d, %d files", missing.Status, len(missing.Files))
	}
	wantLine(t, missing.Stderr, "branch-misses", "not available", misses)
}
