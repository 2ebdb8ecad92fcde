// Command depth prints the number of frames walked per sample, one line for each log: the
// median and the 10 % and 90 % quantiles. Skipped frames are not counted.
package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"

	"ccagent/eventlog"
)

func main() {
	for _, path := range os.Args[1:] {
		depths, err := depths(path)
		if err != nil || len(depths) == 0 {
			fmt.Fprintf(os.Stderr, "depth: %s: %d samples, %v\n", path, len(depths), err)
			os.Exit(1)
		}
		slices.Sort(depths)
		at := func(share int) int { return depths[(len(depths)-1)*share/100] }
		fmt.Println(at(50), at(10), at(90))
	}
}

func depths(path string) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	of := []int{0} // depth by node
	var out []int
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.Nodes:
			for _, n := range e.Nodes {
				if int(n.Parent) >= len(of) {
					return nil, fmt.Errorf("node %d below %d, which is not known", len(of), n.Parent)
				}
				frame := 1
				if !n.Kind.HasAddress() {
					frame = 0
				}
				of = append(of, of[n.Parent]+frame)
			}
		case *eventlog.Sample:
			if int(e.Node) < len(of) {
				out = append(out, of[e.Node]+int(e.FoldedFrames))
			}
		}
	}
	return out, r.Err()
}
