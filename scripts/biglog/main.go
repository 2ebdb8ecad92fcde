// Biglog writes a log of many samples, to measure the viewer with: biglog SAMPLES STACKS FILE.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"

	"ccagent/profile/logtest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "biglog: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("want SAMPLES STACKS FILE")
	}
	samples, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	stacks, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	f, err := os.Create(args[2])
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := logtest.Generate(w, samples, stacks, 1); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
