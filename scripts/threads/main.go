// Command threads runs the programs whose threads are in each other's way, finds out why as docs/threads.md describes, and
// puts into that document what the commands print, between its marks, and the pictures of the screens that the
// viewer shows of the logs, which it keeps in docs/viewer/logs.
//
//	threads [-rounds N]
//
// With -rounds 0 the table of run times is left as it is. It needs root, GHC, tmux, and bin/ccagent and bin/ccview.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	rounds := flag.Int("rounds", 15, "rounds in which run times are measured")
	flag.Parse()
	if err := run(*rounds); err != nil {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(1)
	}
}

// lab is where the programs run.
type lab struct {
	root string // of the repository
	dir  string // has the programs
}

func run(rounds int) error {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "ccagent").Output()
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "threads")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{strings.TrimSpace(string(root)), dir}
	for _, program := range []string{"contention", "conflict"} {
		if err := l.build(program); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	for i := range cases {
		if err := l.show(&text, &cases[i]); err != nil {
			return fmt.Errorf("%s: %w", cases[i].name, err)
		}
	}
	doc := filepath.Join(l.root, "docs/threads.md")
	if err := replace(doc, "contention", text.String()); err != nil {
		return err
	}
	if rounds > 0 {
		table, err := l.measure(rounds)
		if err != nil {
			return err
		}
		if err := replace(doc, "capabilities", table); err != nil {
			return err
		}
	}
	args := []string{"run", "./scripts/pictures"}
	for i := range cases {
		args = append(args, filepath.Join("docs/viewer/tapes", cases[i].name+".tape"))
	}
	draw := exec.Command("go", args...)
	draw.Dir, draw.Stderr = l.root, os.Stderr
	return draw.Run()
}

func (l *lab) build(program string) error {
	cmd := exec.Command("ghc", "-v0", "-O1", "-g3", "-threaded", "-rtsopts", "-outputdir", filepath.Join(l.dir, "obj-"+program), "-o", l.path(program), "Main.hs")
	cmd.Dir = filepath.Join(l.root, "testdata/programs", program)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", program, err, out)
	}
	return nil
}

func (l *lab) path(program string) string { return filepath.Join(l.dir, program) }

// replace puts text between the marks <!-- NAME --> and <!-- end of NAME --> of a document.
func replace(doc, name, text string) error {
	old, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	new, err := between(string(old), name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	return os.WriteFile(doc, []byte(new), 0o644)
}

// between returns a document with the text between its marks of that name replaced.
func between(doc, name, text string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	head, rest, ok := strings.Cut(doc, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", errors.New("there are no marks " + strings.TrimSpace(begin))
	}
	return head + begin + "\n" + strings.TrimSpace(text) + "\n\n" + end + tail, nil
}
