package hwtest_test

import (
	"strings"
	"testing"

	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// The kernels of Debian's stable releases accept the walker, and it walks stacks there.
func TestKernels(t *testing.T) {
	for _, name := range []string{"amd64-6.1", "amd64-6.12"} {
		t.Run(name, func(t *testing.T) {
			image := kernel(t, name)
			files := agentFiles(t, "amd64")
			static := testprog.Options{Flags: []string{"-optl-static"}}
			files["/bin/rev"] = read(t, testprog.Build(t, "rev", static))
			files["/bin/deep"] = read(t, testprog.Build(t, "deep", static))
			done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image, Counted: true}, files, []hwtest.Job{
				doctor, verify,
				record("rev", []string{"-e", "cycles,alloc", "-F", "499"}, "/bin/rev", "220", "120"),
				record("deep", []string{"-e", "cycles", "-F", "499"}, "/bin/deep", "recursion", "50000", "30"),
				record("tick", []string{"-e", "tick"}, "/bin/rev", "220", "200"),
			})
			logVerifier(t, done["verifier"])
			wantLine(t, done["doctor"].Stdout, "ok", "the kernel takes the stack walker")
			// There is no PMU: the user is informed, and so is the log.
			wantLine(t, done["rev"].Stderr, "cycles (cpu-clock): ")
			wantRev(t, logOf(t, done["rev"]), "cycles", enough)
			wantDeep(t, logOf(t, done["deep"]))
			wantRev(t, logOf(t, done["tick"]), "tick", enough)
		})
	}
}

// Where a CPU is taken away and brought back, what runs on it is sampled again. Where there are no probes, that is said:
// Linux 6.1 has one way to put them, which can be hidden.
func TestWhatComesAndGoes(t *testing.T) {
	image := kernel(t, "amd64-6.1")
	files := agentFiles(t, "amd64")
	delete(files, "/bin/bpf")
	files["/bin/rev"] = read(t, testprog.Build(t, "rev", testprog.Options{Flags: []string{"-optl-static"}}))
	const uprobes = "/sys/devices/uprobe"
	// CPUs that take turns, so that time can be counted, would take minutes.
	done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image, CPUs: 2}, files, []hwtest.Job{
		record("unplug", []string{"-e", "cycles", "-F", "499"}, hwtest.Guest, "unplug"),
		doctor,
		where("doctor without probes", doctor, "hide", uprobes),
		where("alone", record("alone", []string{"-e", "alloc"}, "/bin/rev", "220", "1"), "hide", uprobes),
		where("others", record("others", []string{"-e", "cpu-clock,alloc", "-F", "499"}, "/bin/rev", "220", "60"), "hide", uprobes),
	})
	wantUnplugged(t, logOf(t, done["unplug"]))
	wantLine(t, done["doctor"].Stdout, "ok", "probes", "can put probes")
	wantLine(t, done["doctor without probes"].Stdout, "warning", "probes", "puts no probes", "alloc")
	wantLine(t, done["doctor without probes"].Stdout, "CONFIG_UPROBE_EVENTS")
	wantRefused(t, done["alone"], "no event is left", "event alloc is not available", "CONFIG_UPROBE_EVENTS")
	wantLine(t, done["others"].Stderr, "alloc", "CONFIG_UPROBE_EVENTS")
	wantRev(t, logOf(t, done["others"]), "cpu-clock", 30) // without what needs probes
}

// A kernel that is too old is reported as such.
func TestTooOldKernel(t *testing.T) {
	image := kernel(t, "amd64-5.10")
	done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image}, agentFiles(t, "amd64"), []hwtest.Job{
		doctor,
		record("none", nil, "/bin/ccagent", "version"),
	})
	if d := done["doctor"]; d.Status != 1 {
		t.Errorf("doctor: status %d", d.Status)
	}
	wantLine(t, done["doctor"].Stdout, "failed", "kernel", "Linux 5.10")
	wantLine(t, done["doctor"].Stdout, "Linux 5.17 or newer")
	r := done["none"]
	if r.Status != 125 || len(r.Files) != 0 || strings.Contains(r.Stdout, "ccagent") {
		t.Errorf("record: status %d, %d files, output %q", r.Status, len(r.Files), r.Stdout)
	}
	wantLine(t, r.Stderr, "Linux 5.17 or newer")
}
