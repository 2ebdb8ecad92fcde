package hwtest_test

import (
	"slices"
	"testing"

	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// A kernel that is locked down for confidentiality refuses the walker: that is said, with what helps, and nothing is
// started.
func TestConfidentialKernel(t *testing.T) {
	image := kernel(t, "amd64-6.12")
	done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image, Append: "lockdown=confidentiality"}, agentFiles(t, "amd64"), []hwtest.Job{
		doctor,
		record("none", []string{"-e", "cpu-clock"}, "/bin/ccagent", "version"),
	})
	wantLine(t, done["doctor"].Stdout, "failed", "BPF", "locked down for confidentiality")
	wantLine(t, done["doctor"].Stdout, "boot without lockdown=confidentiality")
	wantRefused(t, done["none"], "locked down for confidentiality", "boot without lockdown=confidentiality")
}

// A kernel that is locked down for integrity, as with secure boot, is no hindrance. What it lacks, or forbids, is said
// with what helps: type information, probes, events for users, control groups of version 2.
func TestWhatKernelsLack(t *testing.T) {
	image := kernel(t, "amd64-6.12")
	files := agentFiles(t, "amd64")
	files["/bin/rev"] = read(t, testprog.Build(t, "rev", testprog.Options{Flags: []string{"-optl-static"}}))
	done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image, Append: "lockdown=integrity", Counted: true}, files, []hwtest.Job{
		doctor,
		record("rev", []string{"-e", "cpu-clock,alloc", "-F", "499"}, "/bin/rev", "220", "120"),
		where("doctor without types", doctor, "hide", "/sys/kernel/btf"),
		where("none", record("none", []string{"-e", "cpu-clock"}, "/bin/ccagent", "version"), "hide", "/sys/kernel/btf"),
		where("level 3", doctor, "as-user", "3"),
		where("level 1", doctor, "as-user", "1"),
		// A hierarchy stays mounted; systemd's is added to that of a controller.
		where("groups of a controller", doctor, "groups1", "freezer"),
		where("groups of systemd", doctor, "groups1", "none,name=systemd"),
		{Name: "level", Argv: []string{hwtest.Guest, "read", "/sys/kernel/security/lockdown"}, Seconds: jobSeconds},
	})
	if level := done["level"].Stdout; level != "none [integrity] confidentiality\n" {
		t.Errorf("the lockdown is %q", level)
	}
	wantLine(t, done["doctor"].Stdout, "ok", "the kernel takes the stack walker")
	wantRev(t, logOf(t, done["rev"]), "cpu-clock", enough)
	d := done["doctor without types"]
	wantLine(t, d.Stdout, "failed", "BTF", "no type information")
	wantLine(t, d.Stdout, "CONFIG_DEBUG_INFO_BTF")
	wantRefused(t, done["none"], "no type information (BTF)", "CONFIG_DEBUG_INFO_BTF is needed")
	wantLine(t, done["doctor"].Stdout, "ok", "probes", "can put probes")
	for _, level := range []string{"3", "1"} {
		d := done["level "+level]
		wantLine(t, d.Stdout, "failed", "privileges", "CAP_BPF is missing")
		if level == "3" {
			wantLine(t, d.Stdout, "failed", "CPU clock", "kernel.perf_event_paranoid is 3")
			wantLine(t, d.Stdout, "warning", "PMU", "not known")
		} else {
			wantLine(t, d.Stdout, "ok", "CPU clock")
		}
	}
	wantLine(t, done["groups of a controller"].Stdout, "warning", "control groups", "version 1, without systemd's hierarchy")
	wantLine(t, done["groups of a controller"].Stdout, "by executable, user or service")
	wantLine(t, done["groups of systemd"].Stdout, "warning", "control groups", "version 1", "in systemd's")
	wantLine(t, done["groups of systemd"].Stdout, "systemd.unified_cgroup_hierarchy=1")
}

// where is a job run by one of the guest's helpers, which makes its surroundings.
func where(name string, j hwtest.Job, helper ...string) hwtest.Job {
	j.Name, j.Argv = name, slices.Concat([]string{hwtest.Guest}, helper, j.Argv)
	return j
}

// wantRefused checks that a recording was refused by one line with the words, and that nothing was run.
func wantRefused(t *testing.T, r hwtest.Result, words ...string) {
	t.Helper()
	if r.Status != 125 || len(r.Files) != 0 || r.Stdout != "" {
		t.Errorf("%s: status %d, %d files, output %q", r.Name, r.Status, len(r.Files), r.Stdout)
	}
	wantLine(t, r.Stderr, words...)
}
