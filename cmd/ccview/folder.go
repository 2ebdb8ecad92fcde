package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ccagent/internal/format"
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/pieces"
	"ccagent/profile/rewrite"
	"ccagent/ui/text"

	"github.com/spf13/cobra"
)

// folderFlags choose among the logs of a folder.
type folderFlags struct {
	services, hosts, builds []string
	last                    time.Duration
	now                     time.Time
	span                    pieces.Span // of --range in wall-clock time
	chosen                  map[string][]pieces.Piece
}

// folderFlagNames are those that hold for every command, as they decide what the log is.
var folderFlagNames = []string{"service", "host", "build", "last", "range"}

func (v *view) addFolderFlags(c *cobra.Command) {
	f := c.Flags()
	f.StringSliceVar(&v.services, "service", nil, "of a folder, only the logs of `SERVICE`")
	f.StringSliceVar(&v.hosts, "host", nil, "of a folder, only the logs of `HOST`")
	f.StringSliceVar(&v.builds, "build", nil, "of a folder, only the logs of the build whose id begins with `HEX`")
	f.DurationVar(&v.last, "last", 0, "of a folder, only what was recorded in the last `DURATION`")
}

// parseWall parses --range as wall-clock time.
func (v *view) parseWall() (err error) {
	v.now = time.Now()
	v.span, err = pieces.ParseSpan(v.rng, v.now)
	return err
}

// folder returns the logs that a path stands for if it is a folder, or a folder with a choice of
// its own: DIR?service=api&range=yesterday.
func (v *view) folder(path string) (dir string, c pieces.Choice, is bool, err error) {
	c = pieces.Choice{Services: v.services, Hosts: v.hosts, Builds: v.builds, Span: v.span}
	if v.last > 0 {
		c.Span.From = time.Now().Add(-v.last)
	}
	dir, query, asked := path, "", false
	if _, err := os.Stat(path); err != nil {
		dir, query, asked = strings.Cut(path, "?")
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return "", c, false, nil
	}
	if asked {
		err = ask(&c, query)
	}
	return dir, c, true, err
}

// ask changes a choice as a query says.
func ask(c *pieces.Choice, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return wrong("?%s: %w", query, err)
	}
	for key, list := range values {
		last := list[len(list)-1]
		switch key {
		case "service":
			c.Services = list
		case "host":
			c.Hosts = list
		case "program":
			c.Programs = list
		case "build":
			c.Builds = list
		case "pid":
			c.PIDs = nil
			for _, s := range list {
				n, err := strconv.ParseUint(s, 10, 32)
				if err != nil {
					return wrong("?pid=%s: a process number", s)
				}
				c.PIDs = append(c.PIDs, uint32(n))
			}
		case "last":
			d, err := time.ParseDuration(last)
			if err != nil || d <= 0 {
				return wrong("?last=%s: a duration like 15m", last)
			}
			c.Span = pieces.Span{From: time.Now().Add(-d)}
		case "range":
			if c.Span, err = pieces.ParseSpan(last, time.Now()); err != nil {
				return wrong("?range=%w", err)
			}
		default:
			return wrong("?%s: choose service, host, program, build, pid, last or range", key)
		}
	}
	return nil
}

// choose lists a folder and chooses, once for a path. It warns of what cannot be read.
func (v *view) choose(path string) (chosen []pieces.Piece, c pieces.Choice, is bool, err error) {
	dir, c, is, err := v.folder(path)
	if err != nil || !is {
		if err == nil && (len(v.services)+len(v.hosts)+len(v.builds) > 0 || v.last > 0) {
			err = wrong("--service, --host, --build and --last choose among the logs of a folder, and %s is none", path)
		}
		return nil, c, is, err
	}
	if chosen, ok := v.chosen[path]; ok {
		return chosen, c, true, nil
	}
	all, problems, err := pieces.Scan(dir)
	if err != nil {
		return nil, c, true, err
	}
	v.report(c.Misses(problems))
	chosen = c.Of(all)
	switch {
	case len(all) == 0 && slices.ContainsFunc(problems, func(p pieces.Problem) bool { return p.Begun }):
		return nil, c, true, fmt.Errorf("the logs in %s have just begun: nothing is in them yet", dir)
	case len(all) == 0:
		return nil, c, true, fmt.Errorf("%s is a directory that has no logs: they are files named *%s", dir, pieces.Extension)
	case len(chosen) == 0:
		return nil, c, true, wrong("none of the %s in %s is chosen: they are of %s; ccview ls %s lists them",
			format.Plural(uint64(len(all)), "log"), dir, text.Holdings(all), dir)
	}
	if v.chosen == nil {
		v.chosen = make(map[string][]pieces.Piece)
	}
	v.chosen[path] = chosen
	return chosen, c, true, nil
}

// maxTold bounds the warnings about single files of a folder.
const maxTold = 5

func (v *view) report(problems []pieces.Problem) {
	for i := range problems[:min(maxTold, len(problems))] {
		v.warn("left out: %v", &problems[i])
	}
	if n := len(problems) - maxTold; n > 0 {
		v.warn("left out: %s more that cannot be read; ccview ls lists them", format.Plural(uint64(n), "file"))
	}
}

// loadFolder opens the chosen logs of a folder as one.
func (v *view) loadFolder(path string, progress func(done, total int64)) (*profile.Profile, error) {
	chosen, c, _, err := v.choose(path)
	if err != nil {
		return nil, err
	}
	p, left, err := pieces.Open(chosen, c.Span, progress)
	if err != nil {
		return nil, err
	}
	cut := slices.DeleteFunc(slices.Clone(chosen), func(p pieces.Piece) bool { return p.State != pieces.Cut })
	for i := range cut[:min(maxTold, len(cut))] {
		v.warn("%s was cut off or is damaged: what was recorded up to there is here", cut[i].Path)
	}
	if n := len(cut) - maxTold; n > 0 {
		v.warn("so were %s more; ccview ls lists them", format.Plural(uint64(n), "log"))
	}
	if left > 0 {
		v.warn("%s could not be read or taken over", format.Plural(left, "damaged stretch or event"))
	}
	return p, nil
}

// place turns a range of wall-clock time into one of a log's own time.
func (v *view) place(path string, f *profile.Filter) error {
	chosen, c, is, err := v.choose(path)
	if err != nil || !is && c.Span.Open() {
		return err
	}
	start := time.Time{}
	if is {
		start = pieces.Start(chosen)
	} else {
		p, err := pieces.Look(path)
		if err != nil {
			return unreadable(path, err)
		}
		start = p.Start
	}
	if c.Span.Open() {
		return nil
	}
	r, ok := c.Span.In(start)
	if !ok {
		return wrong("--range %s: %s begins at %s", v.rng, path, start.Format(time.DateTime))
	}
	f.Range = r
	return nil
}

// inputs returns a path's logs for package rewrite.
func (v *view) inputs(path string) ([]rewrite.Input, error) {
	chosen, _, is, err := v.choose(path)
	switch {
	case err != nil:
		return nil, err
	case is:
		return pieces.Inputs(chosen), nil
	}
	return pieces.Inputs([]pieces.Piece{{Path: path}}), nil
}

func lsCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var each bool
	c := &cobra.Command{
		Use:   "ls DIR",
		Short: "the logs of a folder, by process",
		Long: `The logs below a folder, as ccagent daemon leaves them: a line for each process,
or with --pieces for each log. Only the logs' beginnings and block markers are
read.

Every command that takes a log takes a folder, and opens its logs as one:
  ccview --service api --last 15m DIR
  ccview hot --range 14:30-14:35 DIR
  ccview diff 'DIR?service=api&range=yesterday' 'DIR?service=api&range=today'
  ccview diff 'DIR?build=3f2a' 'DIR?build=77c0'`,
		Args: exactly(1, "one folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, _, err := v.check(c); err != nil {
				return err
			}
			if err := refuseChoice(c, "lists whole logs"); err != nil {
				return err
			}
			dir, choice, is, err := v.folder(args[0])
			if err != nil {
				return err
			}
			if !is {
				return fmt.Errorf("%s is no folder", args[0])
			}
			all, problems, err := pieces.Scan(dir)
			if err != nil {
				return err
			}
			return v.print(text.Pieces{Dir: dir, Pieces: choice.Of(all), Problems: problems, Each: each}, dir)
		},
	}
	v.addFlags(c)
	hideOthers(c)
	c.Flags().BoolVar(&each, "pieces", false, "a line for each log")
	return c
}

// errFollowFolder refuses --follow of a folder.
var errFollowFolder = errors.New("--follow shows one log as it grows, and this is a folder")
