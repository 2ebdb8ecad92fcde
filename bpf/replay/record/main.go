//go:build linux && cgo && amd64

// Record makes the snapshots and golden stacks of one build of
// testdata/programs/situations. scripts/snapshots runs it for every build.
//
//	record -ghc 9.0.2 [-threaded] [-profiled] -o FOLDER PROGRAM
//
// For each situation it writes NAME.snap, and NAME.txt with the truth that package oracle
// finds. A situation that does not occur in a build gets no files. If the walker's record
// differs from the truth, record reports it, and NAME.txt has the truth.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"ccagent/bpf/replay"
)

func main() {
	runtime.LockOSThread()
	var b replay.Build
	flag.StringVar(&b.GHC, "ghc", "", "GHC's version")
	flag.BoolVar(&b.Threaded, "threaded", false, "the program was linked with -threaded")
	flag.BoolVar(&b.Profiled, "profiled", false, "the program was compiled with -prof")
	out := flag.String("o", ".", "where to write")
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
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for i := range replay.Situations {
		s := &replay.Situations[i]
		err := record(s, b, out, program)
		switch {
		case errors.Is(err, replay.ErrNotThere):
			fmt.Printf("%s/%s: %v\n", out, s.Name, err)
		case err != nil:
			return fmt.Errorf("record %s: %w", s.Name, err)
		}
	}
	return nil
}

// record records a situation. If the thread's return shows that GHC's row is wrong it
// repeats that with the corrected truth.
func record(s *replay.Situation, b replay.Build, out, program string) error {
	err := recordOnce(s, b, out, program, false)
	if errors.Is(err, replay.ErrUnconfirmed) {
		err = recordOnce(s, b, out, program, true)
	}
	return err
}

func recordOnce(s *replay.Situation, b replay.Build, out, program string, beyond bool) error {
	p, tid, err := s.Start(program, b, os.Stderr)
	if err != nil {
		return err
	}
	defer p.Close()
	truth, registers, err := p.Truth(tid)
	if err != nil {
		return err
	}
	truth.Comment = fmt.Sprintf("%s: %s", s.Name, s.What)
	if beyond {
		if truth, err = truth.Beyond(); err != nil {
			return err
		}
	}
	snap, err := p.Record(tid, registers, truth)
	if err != nil {
		return err
	}
	if err := p.Confirm(tid, truth); err != nil {
		return err
	}
	if err := snap.WriteFile(filepath.Join(out, s.Name+".snap")); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(out, s.Name+".txt"))
	if err != nil {
		return err
	}
	if err := errors.Join(truth.WriteText(f, snap.Name), f.Close()); err != nil {
		return err
	}
	r, err := replay.Walk(replay.FromSnapshot(snap, replay.SnapshotFrames))
	if err != nil {
		return err
	}
	for _, d := range replay.Differences(&r, truth) {
		fmt.Printf("%s/%s: the walker differs: %s\n", out, s.Name, d)
	}
	return nil
}
