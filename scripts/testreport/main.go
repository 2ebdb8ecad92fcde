// Command testreport reads the output of go test -json and prints a line for each package
// and the output of failed tests. With -o it appends a line for each test to a file: "pass",
// "fail" or "skip", the test's name, and either why it was skipped or the most telling lines
// of its failure, separated by tabs. A package that fails outside its tests (it does not
// build, panics, or times out) counts as one failed test. The exit status is 1 if anything
// failed.
//
// It runs in the module's root folder, because it looks up which lines only log.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
)

func main() {
	out := flag.String("o", "", "file to append results to")
	flag.Parse()
	ok, err := run(*out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(path string) (ok bool, err error) {
	results := io.Discard
	if path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return false, err
		}
		defer func() {
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}()
		results = f
	}
	return report(os.Stdin, os.Stdout, results)
}

// event is a line of test2json, or of a build that go test -json began.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	FailedBuild string
	Test        string
	Output      string
	Elapsed     float64
}

type id struct{ pkg, test string }

type reporter struct {
	out, results io.Writer
	printed      map[id]*strings.Builder // by unfinished tests and packages
	builds       map[string]*strings.Builder
	failed       map[string]bool // packages with a failed test
	ran          map[string]int
	ok           bool
}

func report(in io.Reader, out, results io.Writer) (ok bool, err error) {
	r := reporter{
		out: out, results: results, ok: true,
		printed: map[id]*strings.Builder{}, builds: map[string]*strings.Builder{},
		failed: map[string]bool{}, ran: map[string]int{},
	}
	lines := bufio.NewReader(in)
	for {
		line, rerr := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(out, "%s", line) // not JSON: a message of the go command
			} else if err := r.take(e); err != nil {
				return false, err
			}
		}
		if rerr == io.EOF {
			return r.ok, nil
		}
		if rerr != nil {
			return false, rerr
		}
	}
}

func (r *reporter) take(e event) error {
	key := id{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		add(r.builds, e.ImportPath, e.Output)
	case "output":
		add(r.printed, key, e.Output)
	case "pass", "fail", "skip":
		printed := r.printed[key]
		delete(r.printed, key)
		if printed == nil {
			printed = &strings.Builder{}
		}
		if e.Test == "" {
			return r.pkg(e, printed.String())
		}
		return r.test(e, printed.String())
	}
	return nil
}

func (r *reporter) test(e event, printed string) error {
	r.ran[e.Package]++
	var why []string
	switch e.Action {
	case "fail":
		r.ok = false
		r.failed[e.Package] = true
		if _, err := fmt.Fprintf(r.out, "FAIL  %s %s\n%s", e.Package, e.Test, printed); err != nil {
			return err
		}
		why = failure(sourceDir(e.Package), printed)
	case "skip":
		why = []string{reason(printed)}
	}
	return r.record(e.Action, e.Package+" "+e.Test, why...)
}

func (r *reporter) pkg(e event, printed string) error {
	switch {
	case e.Action == "fail":
		r.ok = false
		if b := r.builds[e.FailedBuild]; e.FailedBuild != "" && b != nil {
			printed = b.String() + printed
		}
		fmt.Fprintf(r.out, "FAIL  %s\n", e.Package)
		if r.failed[e.Package] {
			return nil
		}
		// The output of unfinished tests shows where the package panicked or hung.
		for key, b := range r.printed {
			if key.pkg == e.Package {
				printed = b.String() + printed
			}
		}
		fmt.Fprint(r.out, printed)
		return r.record("fail", e.Package, failure(sourceDir(e.Package), printed)...)
	case r.ran[e.Package] > 0:
		_, err := fmt.Fprintf(r.out, "ok    %s %d tests, %.1f s\n", e.Package, r.ran[e.Package], e.Elapsed)
		return err
	}
	return nil
}

func (r *reporter) record(action, name string, why ...string) error {
	line := action + "\t" + name
	for _, w := range why {
		if w != "" {
			line += "\t" + strings.ReplaceAll(w, "\t", " ")
		}
	}
	_, err := fmt.Fprintln(r.results, line)
	return err
}

var (
	bookkeeping = regexp.MustCompile(`^\s*(=== |--- )`)
	position    = regexp.MustCompile(`^[\w.-]+\.go:\d+:\s*`)
)

// reason returns the last message of a skipped test, without its file and line.
func reason(printed string) string {
	why := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		if line != "" && !bookkeeping.MatchString(line) {
			why = position.ReplaceAllString(line, "")
		}
	}
	return why
}

func add[K comparable](m map[K]*strings.Builder, key K, text string) {
	b := m[key]
	if b == nil {
		b = &strings.Builder{}
		m[key] = b
	}
	b.WriteString(text)
}
