package hwtest_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	"ccagent/internal/hwtest"
	"ccagent/internal/testprog"
)

// countedPrograms are what TestReportedOverhead runs, by so many pieces that a run takes one to four seconds of the machine's time. A server
// whose collections are done by several threads takes a different time in each run: on one CPU they wait for each other.
var countedPrograms = []string{"spin 6", "alloc 40", "pingpong 30", "server 80 +RTS -N2 -qg"}

// TestReportedOverhead runs programs in turns with and without a capture where time is the number of executed instructions, and prints what
// they have paid beside what captures report; and likewise in turns without any, which shows what the method resolves. What else runs on the host, caches and the
// hypervisor have no part in it. There is one CPU, that of ccagent too. With CCAGENT_DAEMON set the daemon takes the place of a capture.
func TestReportedOverhead(t *testing.T) {
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: "scripts/bench counted"})
	}
	image := kernel(t, "amd64-6.12")
	files := hwtest.Initramfs{
		hwtest.Guest:    goBuild(t, "amd64", "build", "ccagent/internal/hwtest/guest"),
		"/bin/ccagent":  goBuild(t, "amd64", "build", "ccagent/cmd/ccagent"),
		"/bin/ccview":   goBuild(t, "amd64", "build", "ccagent/cmd/ccview"),
		"/bin/overhead": goBuild(t, "amd64", "build", "ccagent/scripts/overhead"),
		"/bin/steady":   read(t, testprog.Build(t, "steady", testprog.Options{Flags: []string{"-threaded", "-rtsopts", "-optl-static"}})),
	}
	beside := os.Getenv("CCAGENT_DAEMON") != ""
	if beside {
		files["/etc/passwd"] = hwtest.File{Mode: 0o644, Data: []byte("root:x:0:0:root:/root:/bin/sh\n")}
		files["/etc/group"] = hwtest.File{Mode: 0o644, Data: []byte("root:x:0:\n")}
	}
	turns := cmp.Or(os.Getenv("CCAGENT_TURNS"), "12")
	for _, program := range countedPrograms {
		argv := strings.Fields(program)
		t.Run(argv[0], func(t *testing.T) {
			const out = "/tmp/turns"
			flags, more := "", []string(nil)
			if beside {
				flags, more = "daemon", []string{"-daemon"}
			}
			job := func(name string, more ...string) hwtest.Job {
				run := append(append([]string{"/bin/overhead", "-whole", "-rounds", turns, "-o", out, "-flags", flags}, more...), "/bin/ccagent", "/bin/steady")
				return hwtest.Job{Name: name, Argv: append(run, argv...), Seconds: jobSeconds}
			}
			jobs := []hwtest.Job{job("captured", more...), {Name: "table", Argv: []string{"/bin/overhead", "-reported", out}, Seconds: jobSeconds}}
			if !beside { // what the method resolves does not depend on who measures
				jobs = append([]hwtest.Job{job("blank", "-blank")}, jobs...)
			}
			done := boot(t, hwtest.Machine{Arch: "amd64", Kernel: image, Counted: true}, files, jobs)
			for _, job := range jobs {
				if r := done[job.Name]; r.Status != 0 {
					t.Fatalf("%s: status %d\n%s", job.Name, r.Status, r.Stderr)
				}
			}
			fmt.Print(done["table"].Stdout)
		})
	}
}
