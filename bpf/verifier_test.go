package bpf

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// verifierBudget is half of the million instructions after which the kernel's verifier
// refuses a program (BPF_COMPLEXITY_LIMIT_INSNS). The number of processed instructions
// differs between kernel releases; the other half is room for releases that were not tried.
const verifierBudget = 500_000

var processed = regexp.MustCompile(`processed (\d+) insns`)

// The verifier accepts every program within the budget.
func TestVerifierCost(t *testing.T) {
	testprog.NeedRoot(t)
	for _, load := range []func() (*ebpf.CollectionSpec, error){loadSampler, loadNursery, loadTimeline, loadRegisters} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		delete(spec.Programs, timelineProgOnRtsProbes) // the same for kernels from 6.6 on
		verifierCost(t, spec)
	}
	// What is left out unless an event asks for it.
	spec, err := loadSampler()
	if err != nil {
		t.Fatal(err)
	}
	for part, value := range map[string]any{samplerVarWithTransactions: uint8(1), samplerVarKernelStacks: uint8(1), samplerVarThunkEvent: uint16(1)} {
		if err := spec.Variables[part].Set(value); err != nil {
			t.Fatal(err)
		}
	}
	verifierCost(t, spec)
}

func verifierCost(t *testing.T, spec *ebpf.CollectionSpec) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats},
	})
	if errors.Is(err, unix.EPERM) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to load BPF programs"})
	}
	var why *ebpf.VerifierError
	if errors.As(err, &why) {
		t.Fatalf("Linux %s refuses the walker: %v\n%s", release, err, strings.Join(why.Log[max(0, len(why.Log)-20):], "\n"))
	}
	if err != nil {
		t.Fatalf("Linux %s refuses the walker: %v", release, err)
	}
	defer loaded.Close()
	for name, p := range loaded.Programs {
		m := processed.FindStringSubmatch(p.VerifierLog)
		if m == nil {
			t.Fatalf("%s: no count in the verifier's log: %q", name, p.VerifierLog)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("Linux %s: %s has %d instructions, the verifier processes %d", release, name, len(spec.Programs[name].Instructions), n)
		if n > verifierBudget {
			t.Errorf("%s: the verifier processes %d instructions, more than %d", name, n, verifierBudget)
		}
	}
}
