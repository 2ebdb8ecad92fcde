package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/scripts/paired"
)

// turn is what a steady program has done in a stretch without a capture and in one with one.
type turn struct {
	Program, Flags string
	Alone, With    stretch
	// Reported is the overhead by the capture's own account, as a part of all CPU time of the program, and
	// Captured for how long it lasted: less than the stretch, which has the start and the end of ccagent, too.
	Reported float64
	Captured time.Duration
}

// stretch is what lies between the first and the last piece of a time.
type stretch struct {
	CPU, Wall time.Duration
	Pieces    int
}

// paid is the additional CPU time of the pieces that were done under the capture, as a part of all CPU time
// during it, which is the base of Reported.
func (t *turn) paid() float64 {
	alone := t.Alone.CPU.Seconds() / float64(t.Alone.Pieces) * float64(t.With.Pieces)
	return (t.With.CPU.Seconds() - alone) / (t.With.CPU.Seconds() * min(t.Captured.Seconds()/t.With.Wall.Seconds(), 1))
}

// mark is a piece that was done.
type mark struct {
	at  time.Time
	cpu time.Duration // of the program until then
}

// steady is a program that runs, with its pieces so far.
type steady struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	marks []mark
	err   error
}

func startSteady(argv []string) (*steady, error) {
	s := &steady{cmd: exec.Command(argv[0], argv[1:]...)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(out)
	return s, nil
}

// read notes each byte that the program writes.
func (s *steady) read(out io.Reader) {
	clock := int32(^s.cmd.Process.Pid<<3 | 2) // the CPU clock of a process: clock_getcpuclockid(3)
	b := make([]byte, 1)
	for {
		_, err := io.ReadFull(out, b)
		var t unix.Timespec
		if err == nil {
			err = unix.ClockGettime(clock, &t)
		}
		s.mu.Lock()
		s.marks, s.err = append(s.marks, mark{time.Now(), time.Duration(t.Nano())}), err
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// between returns what was done between two times.
func (s *steady) between(from, to time.Time) (st stretch, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return st, fmt.Errorf("read the pieces of %s: %w", s.cmd.Path, s.err)
	}
	var first *mark
	for i := range s.marks {
		m := &s.marks[i]
		switch {
		case m.at.Before(from) || m.at.After(to):
		case first == nil:
			first = m
		default:
			st = stretch{m.cpu - first.cpu, m.at.Sub(first.at), st.Pieces + 1}
		}
	}
	s.marks = nil
	if st.Pieces == 0 {
		return st, fmt.Errorf("%s has done no piece of its work", s.cmd.Path)
	}
	return st, nil
}

// toggle appends turns to o.out.
func toggle(o *options) error {
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.OpenFile(o.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if o.pad {
		_, stop, err := pad()
		if err != nil {
			return err
		}
		defer stop()
	}
	argv := o.argv
	if o.pin {
		cpus, err := ownCPUs()
		if err != nil {
			return err
		}
		argv = append([]string{"taskset", "-c", strconv.Itoa(cpus[len(cpus)-1])}, argv...)
	}
	s, err := startSteady(argv)
	if err != nil {
		return err
	}
	defer func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}()
	log := filepath.Join(dir, "log")
	if o.halt {
		return o.haltInTurns(s, log, json.NewEncoder(file))
	}
	attach := o.attach(s, log, "--duration", fmt.Sprintf("%gs", o.seconds))
	// One more turn at the start, in which the program settles, is not counted.
	for i := range o.rounds + 1 {
		t := o.turn()
		for k := range 2 {
			begin := time.Now()
			switch {
			case (i+k)%2 == 0:
				time.Sleep(time.Duration(o.seconds * float64(time.Second)))
				t.Alone, err = s.between(begin, time.Now())
			case o.blank:
				time.Sleep(time.Duration(o.seconds * float64(time.Second)))
				t.With, err = s.between(begin, time.Now())
				t.Captured = t.With.Wall
			default:
				if err := os.RemoveAll(log); err != nil {
					return err
				}
				// A capture of no samples fails, but it has a log: threads that hand tokens to each other have no waits but idle ones.
				if msg, err := exec.Command(o.ccagent, attach...).CombinedOutput(); err != nil && !bytes.Contains(msg, []byte("no sample was taken")) {
					return fmt.Errorf("run %s %v: %w\n%s", o.ccagent, attach, err, msg)
				}
				t.With, err = s.between(begin, time.Now())
			}
			if err != nil {
				return err
			}
		}
		if !o.blank {
			if t.Reported, t.Captured, err = reportedBy(filepath.Join(filepath.Dir(o.ccagent), "ccview"), log); err != nil {
				return err
			}
		}
		if i > 0 {
			if err := json.NewEncoder(file).Encode(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// attach is a command line of ccagent.
func (o *options) attach(s *steady, log string, more ...string) []string {
	all := append([]string{"attach", "--quiet", "-o", log}, more...)
	return append(append(all, strings.Fields(o.flags[0])...), strconv.Itoa(s.cmd.Process.Pid))
}

// turn is one in which nothing was done.
func (o *options) turn() turn {
	program := strings.Join(append([]string{filepath.Base(o.argv[0])}, o.argv[1:]...), " ")
	if o.pin {
		program += " on one CPU"
	}
	flags := cmp.Or(strings.TrimSpace(o.flags[0]), "default")
	if o.blank {
		flags = "nothing captured"
	}
	return turn{Program: program, Flags: flags}
}

// settle is for how long program and capture run before they are measured.
const settle = 3 * time.Second

// haltInTurns measures stretches in which the ccagent of one capture runs and in which it is stopped, in random order.
func (o *options) haltInTurns(s *steady, log string, out *json.Encoder) error {
	agent := exec.Command(o.ccagent, o.attach(s, log)...)
	if err := agent.Start(); err != nil {
		return err
	}
	defer func() {
		_ = agent.Process.Kill() // if it has not ended
		_ = agent.Wait()
	}()
	time.Sleep(settle)
	turns := make([]turn, o.rounds)
	for i := range turns {
		t := o.turn()
		first := rand.IntN(2)
		for k := range 2 {
			signal, to := unix.SIGCONT, &t.With
			if k != first {
				signal, to = unix.SIGSTOP, &t.Alone
			}
			if err := agent.Process.Signal(signal); err != nil {
				return fmt.Errorf("the capture has ended: %w", err)
			}
			begin := time.Now()
			time.Sleep(time.Duration(o.seconds * float64(time.Second)))
			var err error
			if *to, err = s.between(begin, time.Now()); err != nil {
				return err
			}
		}
		turns[i] = t
	}
	if err := errors.Join(agent.Process.Signal(unix.SIGCONT), agent.Process.Signal(unix.SIGINT), agent.Wait()); err != nil {
		return fmt.Errorf("run %v: %w", agent.Args, err)
	}
	reported, lasted, err := reportedBy(filepath.Join(filepath.Dir(o.ccagent), "ccview"), log)
	for i := range turns {
		turns[i].Reported, turns[i].Captured = reported, lasted
		err = errors.Join(err, out.Encode(turns[i]))
	}
	return err
}

// reportedBy reads the overhead that a capture's log has, and for how long it lasted.
func reportedBy(ccview, log string) (overhead float64, lasted time.Duration, err error) {
	out, err := exec.Command(ccview, "info", "--format", "json", log).Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && len(out) > 0) { // a log of events that are not sampled has no samples
		return 0, 0, fmt.Errorf("read %s by %s: %w", log, ccview, err)
	}
	var doc struct {
		Agent struct {
			Budget *struct{ Measured float64 }
		}
		Duration float64 `json:"duration_seconds"`
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return 0, 0, fmt.Errorf("read what %s says of %s: %w", ccview, log, err)
	}
	if doc.Agent.Budget == nil {
		return 0, 0, fmt.Errorf("%s has no account of its cost", log)
	}
	return doc.Agent.Budget.Measured, time.Duration(doc.Duration * float64(time.Second)), nil
}

// printReported prints for every program and set of flags what its pieces have cost more, what captures
// report, and how far apart they are, in points and as a part of the larger one; of all medians.
func printReported(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	type column struct{ paid, reported []float64 }
	rows, order := map[[2]string]*column{}, [][2]string{}
	for d := json.NewDecoder(f); ; {
		var t turn
		if err := d.Decode(&t); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		of := [2]string{t.Program, t.Flags}
		if rows[of] == nil {
			rows[of], order = &column{}, append(order, of)
		}
		rows[of].paid = append(rows[of].paid, 1+t.paid())
		rows[of].reported = append(rows[of].reported, t.Reported)
	}
	fmt.Fprintln(w, "| Program | Flags | Turns | Paid | Reported | Apart, points | Of the larger |\n|---|---|--:|--:|--:|--:|--:|")
	for _, of := range order {
		c := rows[of]
		paid, reported := paired.Median(c.paid)-1, paired.Median(c.reported)
		apart := "|"
		if reported > 0 { // a capture
			apart = fmt.Sprintf("%+.2f | %+.0f %%", 100*(reported-paid), 100*(reported-paid)/max(reported, paid))
		}
		fmt.Fprintf(w, "| %s | `%s` | %d | %s | %.2f %% | %s |\n", of[0], of[1], len(c.paid), paired.Interval(c.paid), 100*reported, apart)
	}
	return nil
}
