// Pictures draws the pictures of the viewer in the documentation: it has ccview show committed logs in
// tmux, presses the keys that docs/viewer/tapes say, and writes what the terminal shows.
//
// A tape is a file of lines, a word and its arguments each; # begins a comment:
//
//	log FILE [FILE]    the log, in docs/viewer/logs, or below the repository's root; of two the difference
//	program CODE PATH  has the code of a program where its log says that the program is
//	size COLUMNS ROWS  of the terminal
//	keys KEY...        presses keys, by tmux's names
//	await TEXT         waits until the terminal shows the text
//	picture DOC NAME   writes the screen into the block after <!-- picture: NAME --> of a document
//	svg NAME           writes docs/viewer/NAME.svg in the tape's own size, dark
//	gallery NAME       writes docs/viewer/NAME-COLUMNSxROWS-THEME.svg in three sizes and two themes
//
// A program's code is kept beside its log by -code PROGRAM LOG: what was sampled of it, and no more.
//
// With -check nothing is written, and the first picture that differs is an error. With -viewer another ccview
// is shown, one of an earlier state, and no document is written; -o says where the pictures go then.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	check := flag.Bool("check", false, "compare, and write nothing")
	viewer := flag.String("viewer", "", "the ccview to show, in place of this tree's")
	dir := flag.String("o", "", "the folder for SVG files, in place of docs/viewer")
	code := flag.String("code", "", "keep what a log needs of this program's file beside the log")
	flag.Parse()
	if *code != "" {
		for _, log := range flag.Args() {
			if err := keepCode(*code, log); err != nil {
				fmt.Fprintf(os.Stderr, "pictures: %v\n", err)
				os.Exit(1)
			}
		}
		return
	}
	if err := run(*check, *viewer, *dir, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "pictures: %v\n", err)
		os.Exit(1)
	}
}

// run plays the tapes that are named, or all.
func run(check bool, viewer, out string, names []string) error {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "ccview")
	if viewer != "" {
		if program, err = filepath.Abs(viewer); err != nil {
			return err
		}
	} else if said, err := exec.Command("go", "build", "-o", program, "ccagent/cmd/ccview").CombinedOutput(); err != nil {
		return fmt.Errorf("build ccview: %w\n%s", err, said)
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "ccagent").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	s := &studio{root: string(root[:len(root)-1]), dir: dir, program: program, check: check, other: viewer != ""}
	if s.gallery = out; out == "" {
		s.gallery = filepath.Join(s.root, "docs/viewer")
	}
	if len(names) == 0 {
		if names, err = filepath.Glob(filepath.Join(s.root, "docs/viewer/tapes/*.tape")); err != nil {
			return err
		}
	}
	for _, name := range names {
		t, err := readTape(name)
		if err != nil {
			return err
		}
		if err := s.play(t); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
