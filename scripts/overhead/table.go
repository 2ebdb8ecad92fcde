package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"ccagent/scripts/paired"
)

// published are the figures of figure 6 of Wortmann & Duke (2013) for programs of these
// names: what sampling every 100 000 cycles, and every 4096 bytes of allocation, added
// to their run time, in percent.
var published = map[string][2]float64{
	"binary-trees":  {5.7, -0.6},
	"fannkuch":      {8.4, -0.4},
	"integer":       {9.7, -0.8},
	"k-nucleotide":  {10.2, -0.5},
	"n-body":        {10.7, 0.0},
	"pidigits":      {14.6, 0.0},
	"primes":        {7.2, -2.9},
	"spectral-norm": {9.0, -0.4},
}

// publishedFor looks for a program's name among a command's words.
func publishedFor(command string) string {
	for _, word := range strings.Fields(command) {
		if p, is := published[word]; is {
			return fmt.Sprintf(" %+.1f %%, %+.1f %% |", p[0], p[1])
		}
	}
	return " |"
}

// readRounds reads the rounds of a file by program; programs has them in the file's order.
func readRounds(path string) (programs []string, rounds map[string][]round, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	rounds = map[string][]round{}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var r round
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", path, err)
		}
		if len(r.With) != len(r.Flags) || len(r.Agent) != len(r.Flags) {
			return nil, nil, fmt.Errorf("read %s: a round of %s is not whole", path, r.Program)
		}
		if rounds[r.Program] == nil {
			programs = append(programs, r.Program)
		} else if !slices.Equal(r.Flags, rounds[r.Program][0].Flags) {
			return nil, nil, fmt.Errorf("read %s: rounds with other flags", path)
		}
		rounds[r.Program] = append(rounds[r.Program], r)
	}
	if len(programs) == 0 {
		return nil, nil, fmt.Errorf("read %s: it holds no rounds", path)
	}
	return programs, rounds, nil
}

// printTable prints the rounds of a file, as a table in Markdown.
func printTable(w io.Writer, path string) error {
	programs, rounds, err := readRounds(path)
	if err != nil {
		return err
	}
	flags := rounds[programs[0]][0].Flags
	head, rule := "| Program | Alone | Bare event |", "|---|--:|--:|"
	for _, f := range flags {
		head += fmt.Sprintf(" `%s` | Agent |", f)
		rule += "--:|--:|"
	}
	fmt.Fprintf(w, "%s Published: cycles, alloc |\n%s--:|\n", head, rule)
	means := make([][]float64, 1+len(flags)) // of the programs' medians
	for _, p := range programs {
		rs := rounds[p]
		column := func(of func(r *round) float64) []float64 {
			var x []float64
			for i := range rs {
				x = append(x, of(&rs[i]))
			}
			return x
		}
		row := fmt.Sprintf("| %s | %.1f s |", p, paired.Median(column(func(r *round) float64 { return r.Alone.CPU.Seconds() })))
		for k := range means {
			ratios := column(func(r *round) float64 {
				if k == 0 {
					return r.Bare.CPU.Seconds() / r.Alone.CPU.Seconds()
				}
				return r.With[k-1].CPU.Seconds() / r.Alone.CPU.Seconds()
			})
			means[k] = append(means[k], paired.Median(ratios))
			row += " " + paired.Interval(ratios) + " |"
			if k > 0 {
				row += fmt.Sprintf(" %.2f s |", paired.Median(column(func(r *round) float64 { return r.Agent[k-1].Seconds() })))
			}
		}
		fmt.Fprintln(w, row+publishedFor(p))
	}
	row := "| geometric mean | |"
	for k, m := range means {
		row += fmt.Sprintf(" %+.2f %% |", 100*(geometricMean(m)-1))
		if k > 0 {
			row += " |"
		}
	}
	_, err = fmt.Fprintln(w, row+" |")
	return err
}

func geometricMean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(x)))
}
