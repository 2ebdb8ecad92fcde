package activity

import (
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
)

// SparksMade is how many sparks were made, as the run-time system counts them (+RTS -s): duds and those that found no room too.
func SparksMade(s *eventlog.Sparks) uint64 { return s.Created + s.Dud + s.Overflowed }

// Sparks says what became of a program's sparks, and what follows from it: empty where it made none, or nothing is to be said.
func Sparks(s *eventlog.Sparks) (line, advice string) {
	made := SparksMade(s)
	if made == 0 {
		return "", ""
	}
	share := func(n uint64) float64 { return min(float64(n)/float64(made), 1) }
	parts := []string{format.Plural(made, "spark") + " made"}
	for _, of := range []struct {
		n    uint64
		what string
	}{{s.Converted, "converted"}, {s.Fizzled, "fizzled"}, {s.Collected, "collected"}, {s.Overflowed, "overflowed"}, {s.Dud, "dud"}} {
		if of.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", format.Percent(share(of.n)), of.what))
		}
	}
	line = strings.Join(parts, ", ")
	if made < fewSparks {
		return line, ""
	}
	var say []string
	for _, of := range []struct {
		n    uint64
		text string
	}{
		{s.Overflowed, "found their pool full (4096 for each capability): make fewer and larger sparks, by chunks"},
		{s.Dud, "were values already: spark what is not evaluated yet"},
		{s.Collected, "were of results that nothing needed: keep what is sparked, and use it (rpar's result, not its argument)"},
		{s.Fizzled, "were evaluated by others before they ran: spark earlier, or larger parts, or use more capabilities (-N)"},
	} {
		if share(of.n) >= wastedSparks {
			say = append(say, format.Percent(share(of.n))+" "+of.text)
		}
	}
	return line, strings.Join(say, "; ")
}

// fewSparks are so few that nothing follows from them; wastedSparks is the part of all from which on it is said why they came to nothing.
const (
	fewSparks    = 100
	wastedSparks = 0.2
)
