//go:build linux && cgo && amd64

// Record makes the snapshots and golden stacks of one build of
// testdata/programs/situations. scripts/snapshots runs it for every build.
//
//	record -ghc 9.0.2 [-threaded] [-profiled] -o VERSION/WAY PROGRAM
//
// For each situation it adds NAME.snap to WAY.zip, and NAME.txt with the truth that package
// oracle finds to WAY.txtar. A situation that does not occur in a build is left out. If the
// walker's record differs from the truth, record reports it, and NAME.txt has the truth.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"ccagent/bpf/replay"
	"ccagent/bpf/replay/snapshot"
)

func main() {
	runtime.LockOSThread()
	var b replay.Build
	flag.StringVar(&b.GHC, "ghc", "", "GHC's version")
	flag.BoolVar(&b.Threaded, "threaded", false, "the program was linked with -threaded")
	flag.BoolVar(&b.Profiled, "profiled", false, "the program was compiled with -prof")
	out := flag.String("o", "snapshots", "write to this path with .zip and .txtar appended")
	flag.Parse()
	if err := run(b, *out, flag.Arg(0)); err != nil {
		fmt.Fprintf(os.Stderr, "record: %v\n", err)
		os.Exit(1)
	}
}

func run(b replay.Build, out, program string) error {
	if b.GHC == "" || program == "" {
		return errors.New("give -ghc and a program")
	}
	var all []snapshot.Recorded
	for i := range replay.Situations {
		s := &replay.Situations[i]
		r, err := record(s, b, out, program)
		switch {
		case errors.Is(err, replay.ErrNotThere):
			fmt.Printf("%s/%s: %v\n", out, s.Name, err)
		case err != nil:
			return fmt.Errorf("record %s: %w", s.Name, err)
		default:
			all = append(all, r)
		}
	}
	return snapshot.WriteArchives(out, all)
}

// record records a situation. If the thread's return shows that GHC's row is wrong it
// repeats that with the corrected truth.
func record(s *replay.Situation, b replay.Build, out, program string) (snapshot.Recorded, error) {
	r, err := recordOnce(s, b, out, program, false)
	if errors.Is(err, replay.ErrUnconfirmed) {
		r, err = recordOnce(s, b, out, program, true)
	}
	return r, err
}

func recordOnce(s *replay.Situation, b replay.Build, out, program string, beyond bool) (recorded snapshot.Recorded, err error) {
	p, tid, err := s.Start(program, b, os.Stderr)
	if err != nil {
		return recorded, err
	}
	defer p.Close()
	truth, registers, err := p.Truth(tid)
	if err != nil {
		return recorded, err
	}
	truth.Comment = fmt.Sprintf("%s: %s", s.Name, s.What)
	if beyond {
		if truth, err = truth.Beyond(); err != nil {
			return recorded, err
		}
	}
	snap, err := p.Record(tid, registers, truth)
	if err != nil {
		return recorded, err
	}
	if err := p.Confirm(tid, truth); err != nil {
		return recorded, err
	}
	var golden bytes.Buffer
	if err := truth.WriteText(&golden, snap.Name); err != nil {
		return recorded, err
	}
	r, err := replay.Walk(replay.FromSnapshot(snap, replay.SnapshotFrames))
	if err != nil {
		return recorded, err
	}
	for _, d := range replay.Differences(&r, truth) {
		fmt.Printf("%s/%s: the walker differs: %s\n", out, s.Name, d)
	}
	return snapshot.Recorded{Name: s.Name, Snapshot: snap, Golden: golden.Bytes()}, nil
}
