package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// show is what is shown of a program, by two commands: the first writes a log, the second reads it.
type show struct {
	title, name string // name is that of the log, the tape and the picture
	argv        []string
	record      string   // flags of ccagent record; empty for a dump of a program that stands
	view        []string // of ccview, for the second command's text; none for the picture alone
	until       string   // the first command's output is shown up to the line that begins so
	says        string
}

var cases = []show{
	{
		title: "A deadlock of two MVars", name: "deadlock", argv: []string{"contention", "deadlock", "+RTS", "-N2"}, until: "who waits",
		says: "Two transfers lock their accounts in opposite order: each holds what the other waits for.",
	},
	{
		title: "A convoy on a lock", name: "convoy", argv: []string{"contention", "convoy", "+RTS", "-N2"}, until: "6 threads",
		says: "Six requests wait for the lock that a seventh holds in a foreign call. The line below the queue is where the holder is.",
	},
	{
		title: "A queue for a black hole", name: "blackhole", argv: []string{"contention", "lazy", "+RTS", "-N2"}, until: "6 threads",
		says: "Six requests want a value that a seventh computes. The thunk has lost its code when it became a black hole; but the stack of the " +
			"thread that evaluates it has its update frame, and on that the code with which the evaluation goes on: that is what computes the value " +
			"(JSON: `queues[].evaluates`, null if it is not known, as where nothing but another thunk is on the frame).",
	},
	{
		title: "STM whose work is thrown away", name: "conflict", argv: []string{"conflict", "1000", "3", "60000", "+RTS", "-N2"},
		record: "-e stm --max-overhead 5", view: []string{"hot", "--event", "stm-cpu", "--top", "5"},
		says: "Three of five attempts of the costly transaction fail by construction. Of all attempts that is a fifth; of the CPU time it is about half, " +
			"and all of that is of `Main.runAudit`. How it is measured is in [events.md](events.md#transactions-stm).",
	},
	{
		title: "More capabilities, and slower", name: "capabilities", argv: []string{"contention", "count", "500", "+RTS", "-N2"},
		record: "-F 397 -e cpu-clock,gc,threads", view: []string{"hot", "--top", "4"},
		says: "One thread works, and collections run on two: their threads wait for each other, and for the OS to run them. The last line says what to do about it.",
	},
}

// show runs a case, keeps its log, and writes the section.
func (l *lab) show(w io.Writer, c *show) error {
	program, log := c.argv[0], filepath.Join(l.root, "docs/viewer/logs", c.name+".eventlog")
	var said string
	var err error
	if c.record == "" {
		said, err = l.dump(c, log)
		fmt.Fprintf(w, "### %s\n\n```\n$ sudo ccagent threads -o %s.eventlog $(pgrep %s)\n", c.title, c.name, program)
		said, _, _ = strings.Cut(said, "\n"+c.until)
	} else {
		args := append(append([]string{"record"}, strings.Fields(c.record)...), "--no-args", "-o", log, "--", l.path(program))
		said, err = l.output(filepath.Join(l.root, "bin/ccagent"), append(args, c.argv[1:]...)...)
		fmt.Fprintf(w, "### %s\n\n```\n$ sudo ccagent record %s -o %s.eventlog -- ./%s\n", c.title, c.record, c.name, strings.Join(c.argv, " "))
		said = transactions(said)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(log, 0o644); err != nil {
		return err
	}
	if said != "" {
		fmt.Fprint(w, folded(said))
	}
	if len(c.view) > 0 {
		text, err := l.output(filepath.Join(l.root, "bin/ccview"), append(c.view, c.name+".eventlog")...)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "$ ccview %s %s.eventlog\n%s", strings.Join(c.view, " "), c.name, folded(text))
	}
	fmt.Fprintf(w, "$ ccview %s.eventlog\n```\n\n<!-- picture: %s -->\n```\n```\n\n%s\n\n", c.name, c.name, strings.TrimSpace(folded(c.says)))
	return nil
}

// dump takes a dump of a program that has said that it is ready, and ends when its standard input does.
func (l *lab) dump(c *show, log string) (string, error) {
	cmd := exec.Command(l.path(c.argv[0]), c.argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer func() {
		in.Close()
		_ = cmd.Wait() // what it computes is of no interest
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return "", fmt.Errorf("the program says %q, %w", line, err)
	}
	return l.output(filepath.Join(l.root, "bin/ccagent"), "threads", "--no-args", "-o", log, strconv.Itoa(cmd.Process.Pid))
}

// output is what a command prints.
func (l *lab) output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(l.root, "docs/viewer/logs")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, problems.Bytes())
	}
	if strings.HasSuffix(name, "ccagent") && args[0] == "record" {
		return problems.String(), nil
	}
	return out.String(), nil
}

// transactions are the lines about STM of what a capture says.
func transactions(said string) string {
	var b strings.Builder
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "ccagent: stm") && !strings.Contains(line, "samples,") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// width is that of lines in a document's blocks.
const width = 140

// folded is a text in lines of at most the width, without spaces at their ends.
func folded(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = strings.TrimRight(line, " \n")
		for len([]rune(line)) > width {
			r := []rune(line)
			at := width
			for at > 0 && r[at] != ' ' {
				at--
			}
			if at == 0 {
				break
			}
			b.WriteString(strings.TrimRight(string(r[:at]), " ") + "\n")
			line = strings.TrimLeft(string(r[at:]), " ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
