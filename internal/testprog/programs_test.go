package testprog

import (
	"os/exec"
	"regexp"
	"testing"
)

// runs lists every program with arguments for a short run, and what it then prints.
var runs = []struct {
	name   string
	opts   Options
	args   []string
	output string // regular expression for all of it
	status int
}{
	{"standstill", Options{Threaded: true}, []string{}, `(?s).*ready\n15\n`, 0},
	{"conflict", Options{Threaded: true}, []string{"20", "3", "1000"}, `audits 20 failed 30 transfers 30 exceptions 20\n`, 0},
	{"alloc31", Options{}, []string{"100"}, `199554\n`, 0},
	{"attempts", Options{Threaded: true}, []string{"400", "4", "2", "+RTS", "-N2"}, `started \d+ committed 1600 retried \d+ failed \d+\n`, 0},
	{"crowd", Options{Threaded: true}, []string{"20", "4", "fork", "+RTS", "-N2"}, `ready 20\n`, 0},
	{"deep", Options{}, []string{"recursion", "50000", "2"}, `\d+\n`, 0},
	{"deep", Options{}, []string{"thunks", "50000", "2"}, `\d+\n`, 0},
	{"escape", Options{}, []string{"fold", "1000", "2"}, `3547\n`, 0},
	{"escape", Options{}, []string{"concat", "1000", "2"}, `3547\n`, 0},
	{"example", Options{}, []string{"20000"}, `words \d+, entropy [\d.]+, most frequent:( \d+){5}\npairs \d+, entropy [\d.]+, most frequent:( \d+){5}\n`, 0},
	{"exceptions", Options{}, []string{"20", "2"}, `\d+\nthread killed\n`, 0},
	{"fac", Options{}, []string{"10", "2"}, `43545600\n`, 0},
	{"ffi", Options{}, []string{"1", "1000"}, `\d+\n`, 0},
	{"ffi", Options{Threaded: true}, []string{"1", "1000"}, `\d+\n`, 0},
	{"fork", Options{}, []string{"2", "1000"}, `parent \d+\nforked \d+\nstarted \d+\ndone\n`, 0},
	{"fusion", Options{}, []string{"1000", "1"}, `334835501\n`, 0},
	{"liar", Options{Prof: true}, []string{"1"}, ``, 0},
	{"maps", Options{}, []string{"3000", "2"}, `6000000\n`, 0},
	{"pingpong", Options{Threaded: true}, []string{"100"}, `100\n`, 0},
	{"quick", Options{}, nil, `quick\n`, 0},
	{"quick", Options{}, []string{"7"}, `quick 7\n`, 7},
	{"rev", Options{}, []string{"110", "2"}, `\d+\n`, 0},
	{"rewriter", Options{}, []string{"late", "1000", "2"}, `65986\n`, 0},
	{"rewriter", Options{}, []string{"early", "1000", "2"}, `65986\n`, 0},
	{"server", Options{Threaded: true}, []string{"2000", "10", "4", "+RTS", "-N2"}, `1950\n`, 0},
	{"situations", Options{}, []string{"arguments", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"apply", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"unsafe", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"safe", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"collect", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"allocate", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"masked", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"stm", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"unsafePerformIO", "12"}, `\d+\n`, 0},
	{"situations", Options{}, []string{"caf", "12"}, `\d+\n`, 0},
	{"spin31", Options{}, []string{"3"}, `\d+\n`, 0},
	{"stm", Options{}, []string{"4"}, `\d+\n`, 0},
	{"waits", Options{}, []string{"2"}, `safe \d+ unsafe \d+ delay \d+ sum 5740210000\n`, 0},
	{"twice", Options{Threaded: true}, []string{"private", "3", "10", "+RTS", "-N2"}, `0 of 60 pieces were done again\n`, 0},
	{"threads100", Options{Threaded: true}, []string{"10", "7", "2", "+RTS", "-N2"},
		`(thread \d+ cap [01] depth 1\d\n){7}(bound \d+ cap - depth 1[01]\n){2}done 9\n`, 0},
}

// Each program does what its usage line says, and prints the same with -O0: the result does
// not depend on optimisation.
func TestPrograms(t *testing.T) {
	for _, r := range runs {
		t.Run(r.name, func(t *testing.T) {
			outputs := map[string]bool{}
			for _, o0 := range []bool{false, true} {
				o := r.opts
				o.O0 = o0
				cmd := exec.Command(Build(t, r.name, o), r.args...)
				out, err := cmd.Output()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				if got := cmd.ProcessState.ExitCode(); got != r.status {
					t.Errorf("%v: status %d, want %d (%v)", r.args, got, r.status, err)
				}
				if !regexp.MustCompile(`\A` + r.output + `\z`).Match(out) {
					t.Errorf("%v printed\n%s\nwant %s", r.args, out, r.output)
				}
				outputs[regexp.MustCompile(`(parent|forked|started|thread|bound|safe|unsafe|delay|retried|failed) \d+`).ReplaceAllString(string(out), "$1")] = true
			}
			if len(outputs) != 1 {
				t.Errorf("%v: output differs between -O2 and -O0: %v", r.args, outputs)
			}
		})
	}
}

// A program is built once for each set of options.
func TestBuildIsCached(t *testing.T) {
	first := Build(t, "quick", Options{})
	if again := Build(t, "quick", Options{}); again != first {
		t.Errorf("built twice: %s, %s", first, again)
	}
	if other := Build(t, "quick", Options{NoDebug: true}); other == first {
		t.Errorf("other options gave the same file %s", other)
	}
}
