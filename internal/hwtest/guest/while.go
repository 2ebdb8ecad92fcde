//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
)

// while runs a command beside a program that does not end by itself, with the program's process id in place of PID.
// What the program prints is not kept.
//
//	init while PROG ARG… -- COMMAND ARG…
func while(args []string) error {
	end := slices.Index(args, "--")
	if end < 1 || end+1 == len(args) {
		return fmt.Errorf("while: name a program and a command")
	}
	program := exec.Command(args[0], args[1:end]...)
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		return fmt.Errorf("while: %w", err)
	}
	argv := slices.Clone(args[end+1:])
	for i := range argv {
		if argv[i] == "PID" {
			argv[i] = strconv.Itoa(program.Process.Pid)
		}
	}
	command := exec.Command(argv[0], argv[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	err := command.Run()
	if killed := program.Process.Kill(); killed != nil {
		return fmt.Errorf("while: %s has ended: %w", args[0], killed)
	}
	_ = program.Wait() // killed
	return err
}
