package ui

import (
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diff"
	"ccagent/ui/screen"
)

// Against is two groups of logs to compare. The other screens show the first of B, or of A.
type Against struct {
	A, B    []Source
	Level   profile.Level
	Bands   *closures.Grouping // of the heap, first; nil leaves it to the logs
	Options diff.Options
}

// load reads all logs, one after another.
func (g *Against) load(progress func(done, total int64)) (*screen.Compared, error) {
	c := &screen.Compared{Level: g.Level, Bands: g.Bands, Options: g.Options, Shown: screen.SideB}
	read := 0
	all := int64(len(g.A) + len(g.B))
	group := func(from []Source) (ps []*profile.Profile, names []string, err error) {
		for _, s := range from {
			p, err := s.Load(func(done, total int64) {
				// Every log counts the same, since the sizes of the next ones are unknown.
				progress(int64(read)*max(1, total)+done, all*max(1, total))
			})
			if err != nil {
				return nil, nil, &LogError{s.Name, err}
			}
			read++
			ps, names = append(ps, p), append(names, s.Name)
		}
		return ps, names, nil
	}
	var err error
	if c.A, c.NamesA, err = group(g.A); err != nil {
		return nil, err
	}
	if c.B, c.NamesB, err = group(g.B); err != nil {
		return nil, err
	}
	return c, nil
}

// LogError is an error of reading one of several logs.
type LogError struct {
	Name string
	Err  error
}

func (e *LogError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the error of reading.
func (e *LogError) Unwrap() error { return e.Err }
