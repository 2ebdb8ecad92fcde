package hwtest_test

import (
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

// A kernel that is locked down for integrity, as with secure boot, is no hindrance. That it has no type information is
// said.
func TestWhatKernelsLack(t *testing.T) {
	image := kernel(t, "amd64-6.12")
	files := agentFiles(t, "amd64")
	files["/bin/rev"] = read(t, testprog.Build(t, "rev", testprog.Options{Flags: []string{"-optl-static"}}))
	hidden := func(name string, j hwtest.Job) hwtest.Job {
		j.Name, j.Argv = name, append([]string{hwtest.Guest, "hide", "/sys/kernel/btf"}, j.Argv...)
		return j
	}
	done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image, Append: "lockdown=integrity", Counted: true}, files, []hwtest.Job{
		doctor,
		record("rev", []string{"-e", "cpu-clock,alloc", "-F", "499"}, "/bin/rev", "220", "120"),
		hidden("doctor without types", doctor),
		hidden("none", record("none", []string{"-e", "cpu-clock"}, "/bin/ccagent", "version")),
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
}

// wantRefused checks that a recording was refused by one line with the words, and that nothing was run.
func wantRefused(t *testing.T, r hwtest.Result, words ...string) {
	t.Helper()
	if r.Status != 125 || len(r.Files) != 0 || r.Stdout != "" {
		t.Errorf("%s: status %d, %d files, output %q", r.Name, r.Status, len(r.Files), r.Stdout)
	}
	wantLine(t, r.Stderr, words...)
}
