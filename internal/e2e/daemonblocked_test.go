package e2e

import (
	"bufio"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// The daemon samples for how long threads wait, as the program measures it. It looks once a second or so, and writes what it finds into
// the pieces of the process. A rule leaves it out of others, and ps says so.
func TestDaemonBlocked(t *testing.T) {
	testprog.NeedRoot(t)
	const threads = 3
	for _, o := range []testprog.Options{{Threaded: true}, {Release: "9.10.3", Threaded: true}} {
		t.Run("GHC "+o.Release, func(t *testing.T) {
			exe := testprog.Build(t, "blocked", o)
			left := runOn(t, nil, testprog.Build(t, "spin31", testprog.Options{}), forever)
			h := newHost(t)
			h.more = "  events: [cpu-clock, blocked]\n"
			h.configure("  - {executable: blocked, profile: true}\n  - {executable: spin31, profile: true, without: [blocked]}\n  - {profile: false}\n")
			h.start()
			h.await(left.Process.Pid, "cpu-clock")
			if m := h.ps(0)[left.Process.Pid].Missing; len(m) != 1 || m[0].Event != "blocked" || !strings.Contains(m[0].Reason, "rule") {
				t.Errorf("ps says of what a rule leaves out: %+v", m)
			}

			cmd := exec.Command(exe, "400", strconv.Itoa(threads))
			cmd.Dir = "/"
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Kill()
				cmd.Wait()
			})
			pid := cmd.Process.Pid
			h.await(pid, "cpu-clock", "blocked")
			says := bufio.NewScanner(out)
			if !says.Scan() {
				t.Fatal("the program says nothing")
			}
			said := map[string]float64{} // s
			words := strings.Fields(says.Text())
			for i := 0; i+1 < len(words); i += 2 {
				us, err := strconv.ParseFloat(words[i+1], 64)
				if err != nil {
					t.Fatalf("the program says %q", says.Text())
				}
				said[words[i]] = us / 1e6
			}
			eventually(t, "the program has ended", func() bool { return h.ps(0)[pid].PID == 0 })
			log := filepath.Join(t.TempDir(), "snapshot.eventlog")
			eventually(t, "the last piece is closed", func() bool {
				return run(t, command(t, ccagent, "snapshot", strconv.Itoa(pid), "--last", "1h", "-o", log, "--socket", h.socket)).status == 0 &&
					len(h.pieces(pid)) == len(h.closed(pid, 1<<10))
			})
			if r := run(t, command(t, ccagent, "snapshot", strconv.Itoa(pid), "--last", "1h", "-o", log, "--socket", h.socket)); r.status != 0 {
				t.Fatal(r.stderr)
			}
			var hot struct {
				Unit  string
				Total float64
				Rows  []hotRow
			}
			view(t, &hot, "hot", "--event", "blocked", "--top", "0", log)
			if hot.Unit != "ns" {
				t.Errorf("the unit is %q", hot.Unit)
			}
			has := map[string]float64{} // s
			for _, row := range hot.Rows {
				has[row.Element] = row.Inclusive * hot.Total / 1e9
			}
			t.Logf("the program says %v s, the log has %v", said, has)
			// These wait almost all of their time, and are seen at each look: the error is of the first and of the last one, of each
			// thread for a stretch or two of a second, and before the process is found.
			const edge = threads * 5
			for element, want := range map[string]float64{
				"(STM)": said["awaitChange"], "(black hole)": said["demand"], "Main.demand": said["demand"], "Main.callOut": said["callOut"],
			} {
				if got := has[element]; math.Abs(got-want) > edge {
					t.Errorf("%s has %.1f s in the log, and %.1f s by the program", element, got, want)
				}
			}
			// And the main thread, who serves the others, and who evaluates what they demand.
			if got, least := has["(MVar)"], said["pause"]+said["receive"]; got < least-2*edge || got > least+said["pause"]+2*edge {
				t.Errorf("(MVar) has %.1f s, and at least %.1f are of pause and receive", got, least)
			}
			for piece := range slices.Values(h.pieces(left.Process.Pid)) {
				if r := run(t, command(t, ccview, "hot", "--event", "blocked", piece)); r.status == 0 && strings.Contains(r.stdout, "Main.") {
					t.Errorf("%s has waits that a rule leaves out:\n%s", piece, r.stdout)
					break
				}
			}
			if r := run(t, command(t, ccview, "hot", "--service", "blocked", "--event", "blocked", "--format", "json", h.state)); r.status != 0 || !strings.Contains(r.stdout, "Main.callOut") {
				t.Errorf("the pieces by service: status %d\n%s%s", r.status, r.stdout, r.stderr)
			}
		})
	}
}
