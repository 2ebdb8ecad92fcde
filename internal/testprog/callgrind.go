package testprog

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// CountInstructions runs a position-dependent program under callgrind and returns the number
// of executions of the instruction at each address.
func CountInstructions(tb testing.TB, exe string, args ...string) map[uint64]float64 {
	tb.Helper()
	valgrind := NeedTool(tb, "valgrind", "")
	out := filepath.Join(tb.TempDir(), "callgrind.out")
	// The RTS reserves more address space than valgrind has, unless limited.
	script := `ulimit -v 16000000; exec "$0" --quiet --tool=callgrind --dump-instr=yes --callgrind-out-file="$1" "${@:2}"`
	cmd := exec.Command("bash", append([]string{"-c", script, valgrind, out, exe}, append(args, "+RTS", "-V0")...)...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("run %s under callgrind: %v\n%s", exe, err, msg)
	}
	return selfCosts(tb, out)
}

// selfCosts sums the instruction counts of a callgrind dump by address. The line after a
// calls= line is the callee's cost, which is skipped.
func selfCosts(tb testing.TB, path string) map[uint64]float64 {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	costs := map[uint64]float64{}
	var addr uint64
	callee := false
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(line, "calls=") {
			callee = true
			continue
		}
		if line == "" || !strings.ContainsRune("0123456789+-*", rune(line[0])) {
			continue
		}
		fields := strings.Fields(line) // address, line, instructions
		if fields[0] != "*" {
			relative := line[0] == '+' || line[0] == '-'
			n, err := strconv.ParseInt(fields[0], 0, 64)
			if err != nil {
				tb.Fatalf("read %s: %v in %q", path, err, line)
			}
			if relative {
				addr += uint64(n)
			} else {
				addr = uint64(n)
			}
		}
		if !callee && len(fields) == 3 {
			n, err := strconv.ParseFloat(fields[2], 64)
			if err != nil {
				tb.Fatalf("read %s: %v in %q", path, err, line)
			}
			costs[addr] += n
		}
		callee = false
	}
	if err := s.Err(); err != nil {
		tb.Fatal(err)
	}
	return costs
}
