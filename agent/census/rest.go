package census

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"ccagent/agent/hold"
	"ccagent/heap"
	"ccagent/perf"
)

// errCollecting is returned where the program was stopped in a collection.
var errCollecting = errors.New("the program collects garbage")

// A program that was stopped in a collection is let run for restPause, so often.
const (
	restTries = 50
	restPause = 10 * time.Millisecond
)

// AtRest stops the program where it is, and counts all that is in its heap, garbage too.
func (r *Reader) AtRest(ctx context.Context, o Options) (*Census, error) {
	for range restTries {
		census, err := r.atRest(ctx, o)
		if !errors.Is(err, errCollecting) {
			return census, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(restPause):
		}
	}
	return nil, fmt.Errorf("%w whenever it is stopped; wait longer for the end of a collection with --wait", errCollecting)
}

func (r *Reader) atRest(ctx context.Context, o Options) (*Census, error) {
	c := copier{atRest: true}
	if before, err := r.Descriptors(); err == nil {
		var size uint64
		for i := range before.Groups {
			if g := &before.Groups[i]; c.takes(before, g) && whole(g) {
				size += g.Used()
			}
		}
		c.reserve(size + size/4)
	}
	defer c.free()
	census := &Census{Manner: AtRest, Tally: heap.NewTally(r.Layout, r.look)}
	stop, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	err := hold.AtRest(stop, r.PID, func() (err error) {
		census.Time = perf.Monotonic()
		if r.collecting() {
			return errCollecting
		}
		if census.Descriptors, err = r.Descriptors(); err != nil {
			return err
		}
		for i := range census.Descriptors.Groups {
			if g := &census.Descriptors.Groups[i]; g.Flags == 0 && c.takes(census.Descriptors, g) {
				census.Nursery += g.Used()
			}
		}
		if err := c.while(r, census); err != nil {
			return err
		}
		census.Pause = time.Duration(perf.Monotonic() - census.Time)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.after(r, census); err != nil {
		return nil, err
	}
	return census, census.check()
}

// stopPatience is how long all threads of a program may take to stop.
const stopPatience = time.Second

// maxStack is how much of a thread's C stack is looked at, in bytes.
const maxStack = 16 << 10

// collecting reports whether a thread of the stopped process is in GarbageCollect: whether its
// stack has a return address in there. A word that was left behind by an earlier call is taken for
// one too.
func (r *Reader) collecting() bool {
	if r.vars.CollectEnd <= r.vars.Collect {
		return false
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", r.PID))
	if err != nil {
		return false
	}
	var stack [maxStack]byte
	for _, t := range threads {
		sp, pc, ok := stackOf(r.PID, t.Name())
		if !ok {
			continue
		}
		n, _ := r.Memory.ReadAt(stack[:], int64(sp)) // as much as there is
		if r.inCollect(pc) {
			return true
		}
		for at := 0; at+8 <= n; at += 8 {
			if r.inCollect(binary.LittleEndian.Uint64(stack[at:])) {
				return true
			}
		}
	}
	return false
}

func (r *Reader) inCollect(addr uint64) bool {
	return addr > r.vars.Collect && addr < r.vars.CollectEnd
}

// stackOf reads the stack pointer and the instruction pointer of a stopped thread.
func stackOf(pid int, tid string) (sp, pc uint64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", pid, tid))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 3 {
		return 0, 0, false
	}
	var errs [2]error
	sp, errs[0] = strconv.ParseUint(fields[len(fields)-2], 0, 63)
	pc, errs[1] = strconv.ParseUint(fields[len(fields)-1], 0, 63)
	return sp, pc, errs == [2]error{}
}
