//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// beside starts a program, waits until it prints a line, and runs a command twice with the program's process id in
// place of PID: what it finds the first time may be of when the program was not at rest yet. Then it interrupts the program. What the program prints comes first.
//
//	init beside LINE LINES PROG ARG… -- COMMAND ARG…     so many empty lines are written to the program
//	                                                     when it has printed LINE
func beside(args []string) error {
	end := slices.Index(args, "--")
	if end < 3 || end+1 == len(args) {
		return fmt.Errorf("beside: name a line, how many to answer, a program and a command")
	}
	answers, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("beside: %w", err)
	}
	program := exec.Command(args[2], args[3:end]...)
	program.Stderr = os.Stderr
	in, err := program.StdinPipe()
	if err != nil {
		return fmt.Errorf("beside: %w", err)
	}
	out, err := program.StdoutPipe()
	if err != nil {
		return fmt.Errorf("beside: %w", err)
	}
	if err := program.Start(); err != nil {
		return fmt.Errorf("beside: %w", err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != args[0] {
		fmt.Println(lines.Text())
	}
	for range answers {
		if _, err := in.Write([]byte("\n")); err != nil {
			return fmt.Errorf("beside: %w", err)
		}
	}
	argv := slices.Clone(args[end+1:])
	for i := range argv {
		if argv[i] == "PID" {
			argv[i] = strconv.Itoa(program.Process.Pid)
		}
	}
	var printed []byte
	var failed error
	for range 2 {
		command := exec.Command(argv[0], argv[1:]...)
		command.Stderr = os.Stderr
		printed, failed = command.Output()
	}
	os.Stdout.Write(printed)
	if err := program.Process.Signal(unix.SIGINT); err != nil {
		return fmt.Errorf("beside: interrupt %s: %w", args[2], err)
	}
	for lines.Scan() { // what it prints until it ends
		continue
	}
	_ = program.Wait() // interrupted
	return failed
}
