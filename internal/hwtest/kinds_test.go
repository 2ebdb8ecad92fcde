package hwtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/ghc"
	"ccagent/internal/hwtest"
	"ccagent/internal/programlogs"
	"ccagent/internal/testprog"
)

// TestProgramLogs records each kind of program for arm64 that ghc.Programs lists, and stores its log.
func TestProgramLogs(t *testing.T) {
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: "scripts/bench programs"})
	}
	image := kernel(t, "arm64-6.1")
	files := agentFiles(t, "arm64")
	delete(files, "/bin/bpf")
	jobs := recordKinds(t, files, ghcForArm64(t))
	done := boot(t, hwtest.Machine{Arch: "arm64", Kernel: image, CPUs: 2}, files, jobs)
	for _, k := range programlogs.KindsOf("arm64") {
		r := done[k.Name()]
		if err := programlogs.Record(tryView, "../..", k, logOf(t, r), r.Stdout+r.Stderr); err != nil {
			t.Errorf("%v\n%s", err, r.Stderr)
		}
	}
}

// ghcForArm64 gives the compiler. The test is skipped if it could not be fetched.
func ghcForArm64(t *testing.T) string {
	t.Helper()
	ghc := filepath.Join(fetched(t), "tools-arm64", "ghc")
	if _, err := os.Stat(ghc); err != nil {
		unavailable(t, "ghc-arm64", "GHC for arm64")
	}
	return ghc
}

// recordKinds builds a program of each kind for arm64, adds it to the files, and gives the jobs that record them.
func recordKinds(t *testing.T, files hwtest.Initramfs, compiler string) (jobs []hwtest.Job) {
	t.Helper()
	for _, k := range programlogs.KindsOf("arm64") {
		o := testprog.Options{GHC: compiler, Threaded: k.Way.Threaded(), Prof: k.Way.Profiled(), Flags: []string{"-finfo-table-map"}}
		switch k.Form {
		case ghc.Static:
			o.Flags = append(o.Flags, "-optl-static")
		case ghc.StaticPIE:
			o.Flags = append(o.Flags, staticPIE...)
		case ghc.Shared:
			o.Dynamic = true
		default:
			t.Fatalf("no test builds programs %s for arm64", k.Form)
		}
		exe := testprog.Build(t, "seen", o)
		files["/bin/"+k.Name()] = read(t, exe)
		if o.Dynamic {
			addLibraries(t, files, filepath.Join(fetched(t), "ghc-arm64"), exe)
		}
		program := append([]string{"/bin/" + k.Name(), programlogs.Cells, programlogs.Rounds, "3000000"}, programlogs.Collect...)
		jobs = append(jobs, record(k.Name(), k.Flags(), program...))
	}
	return jobs
}
