package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/ui/printer"
	ccscreen "ccagent/ui/screen/centres"
)

// maxSetFile bounds a set file's size.
const maxSetFile = 1 << 20

// ccs holds the flags of one call of ccview ccs.
type ccs struct {
	*view
	selects []string
	mode    string
	set     string
	save    string
	prof    bool
	dot     bool
	svg     bool
	stack   bool
	costs   bool
}

func ccsCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &ccs{view: &view{stdout: stdout, stderr: stderr}}
	c := &cobra.Command{
		Use:   "ccs FILE",
		Short: "cost centres, chosen after the run",
		Long: `Cost centres: every sample belongs to exactly one, so the individual figures sum
to the whole, whatever is chosen. Centres are chosen here and now, on the log of
an ordinary binary:

  --select Main.load,Main.save          bindings; * is any text, ? a character
  --select 'Data.Map.*,containers'      bindings, modules, packages, files
  --select module:Main,src/A.hs:10-20   a named level, a stretch of source
  --select 'io=System.*,io=GHC.IO.*'    one centre of several
  --select @bindings                    also @modules, @packages

Of nested centres the innermost that encloses the code has the cost. Code in no
centre is subsumed by its caller. What came by way of a thunk's evaluation is
reported as forced: its centre forced the thunk and need not have built it.

  lexical     the innermost centre that statically encloses the code
  evaluation  the nearest procedure on the stack that is a centre
  stacks      cost-centre stacks: which centre on behalf of which
  exact       the stacks that a -prof binary kept itself: on logs of such

--costs lists the kinds of costs: exact counts of programs compiled with
-ticky, and estimates from samples for all.`,
		Args: exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error { return v.run(c, args[0]) },
	}
	v.addFlags(c)
	f := c.Flags()
	f.StringArrayVar(&v.selects, "select", nil, "the centres: `GLOB,…` (default @bindings)")
	f.StringVar(&v.mode, "mode", "lexical", "lexical, evaluation, stacks or exact")
	f.StringVar(&v.set, "set", "", "take the centres from `FILE`, written by --save")
	f.StringVar(&v.save, "save", "", "write the centres to `FILE`")
	f.BoolVar(&v.prof, "prof", false, "print the layout of GHC's +RTS -p report")
	f.BoolVar(&v.dot, "dot", false, "print the call graph of the centres for Graphviz")
	f.BoolVar(&v.svg, "svg", false, "draw the call graph of the centres")
	f.BoolVar(&v.stack, "stack", false, "print the most expensive cost-centre stack alone")
	f.BoolVar(&v.costs, "costs", false, "print of what kinds bindings' costs are: ticky counters, and estimates from samples")
	return c
}

func (v *ccs) run(c *cobra.Command, path string) error {
	mode, set, err := v.centreFlags()
	if err != nil {
		return err
	}
	s, _, err := v.selection(c, path)
	if err != nil {
		return err
	}
	if v.costs {
		return v.print(ccscreen.KindsReport{Selection: s, Made: made(s)}, path)
	}
	if mode == centres.ModeExact && !s.Profile.HasCostCentreStacks() {
		return wrong("--mode exact needs the cost-centre stacks of a -prof binary, and the samples of %s carry none: use lexical, evaluation or stacks, which work on any binary, or profile the program built with -prof (ghc -prof -fprof-auto-exported); no +RTS flag is needed", path)
	}
	stacks := centres.ModeStacks
	if mode == centres.ModeExact {
		stacks = mode
	}
	if v.save != "" {
		if err := os.WriteFile(v.save, []byte(set.Format()), 0o666); err != nil {
			return wrong("save the set of cost centres: %w", err)
		}
	}
	found, err := v.find(s.Profile, set, path)
	if err != nil {
		return err
	}
	o := v.options(path)
	switch {
	case v.prof:
		return v.report(s, found, stacks, o)
	case v.dot:
		return ccscreen.Graph(v.stdout, s, centres.Attribute(s, found, stacks), o)
	case v.svg:
		return ccscreen.GraphSVG(v.stdout, s, centres.Attribute(s, found, stacks), o)
	case v.stack:
		return ccscreen.ExpensiveStack(v.stdout, s, centres.Attribute(s, found, stacks), o)
	}
	return v.print(ccscreen.Report{Selection: s, Costs: centres.Attribute(s, found, mode)}, path)
}

// centreFlags checks the flags that do not depend on the log.
func (v *ccs) centreFlags() (centres.Mode, centres.Set, error) {
	var set centres.Set
	mode, err := centres.ParseMode(v.mode)
	if err != nil {
		return 0, set, &wrongCall{err}
	}
	only := 0
	for _, b := range []bool{v.prof, v.dot, v.svg, v.stack, v.costs, v.format == "json" && !v.costs} {
		if b {
			only++
		}
	}
	if only > 1 {
		return 0, set, wrong("choose one of --prof, --dot, --svg, --stack, --costs and --format json")
	}
	if v.set != "" {
		if set, err = readSet(v.set); err != nil {
			return 0, set, err
		}
	}
	for _, list := range v.selects {
		for _, item := range strings.Split(list, ",") {
			p, err := centres.ParsePattern(item)
			if err != nil {
				return 0, set, &wrongCall{fmt.Errorf("--select: %w", err)}
			}
			set.Patterns = append(set.Patterns, p)
		}
	}
	if len(set.Patterns) == 0 && v.set == "" {
		if mode == centres.ModeExact { // all cost centres that the program was compiled with
			set.Patterns = []centres.Pattern{{Level: profile.LevelBinding, HasLevel: true, Glob: "*"}}
			return mode, set, nil
		}
		set.Patterns = []centres.Pattern{{Preset: centres.PresetBindings}}
	}
	return mode, set, nil
}

func readSet(path string) (centres.Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return centres.Set{}, wrong("read the set of cost centres: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSetFile+1))
	if err != nil {
		return centres.Set{}, wrong("read the set of cost centres: %w", err)
	}
	if len(data) > maxSetFile {
		return centres.Set{}, wrong("read the set of cost centres: %s has more than %d bytes", path, maxSetFile)
	}
	set, err := centres.ParseSet(string(data))
	var bad *centres.SetError
	if errors.As(err, &bad) {
		return set, wrong("read the set of cost centres %s: %w", path, err)
	}
	return set, err
}

// find looks up the set's centres in a log. A glob of the command line that matches
// nothing is an error; a glob of a set file, which is used on many logs, is a warning.
func (v *ccs) find(p *profile.Profile, set centres.Set, path string) (*centres.Found, error) {
	found := centres.Find(p, set)
	given := make(map[centres.Pattern]bool)
	for _, list := range v.selects {
		for _, item := range strings.Split(list, ",") {
			if pat, err := centres.ParsePattern(item); err == nil {
				given[pat] = true
			}
		}
	}
	for _, m := range found.Missed {
		if given[m.Pattern] && m.Pattern.Preset == centres.NoPreset {
			return nil, &wrongCall{m}
		}
		v.warn("%s", m)
	}
	if p.Symbolised && !p.HasNotes() {
		v.warn("%s: no code has source notes, so cost centres are bindings by their symbols, and inlined code is its procedure's: build with -g3", path)
	}
	return found, nil
}

// made returns the selection with the log's event that counts bytes, or nil if it has
// none.
func made(s *profile.Selection) *profile.Selection {
	p := s.Profile
	for i := range p.Events {
		if p.Events[i].Unit == "bytes" && i != s.Event && p.Events[i].Samples > 0 {
			return p.Select(s.Filter.WithEvent(i))
		}
	}
	return nil
}

// report prints time and, if the log has it, allocation in the layout of +RTS -p.
func (v *ccs) report(s *profile.Selection, found *centres.Found, mode centres.Mode, o printer.Options) error {
	time := centres.Attribute(s, found, mode)
	var alloc *centres.Costs
	if a := made(s); a != nil {
		alloc = centres.Attribute(a, found, mode)
	}
	return ccscreen.ProfReport(v.stdout, s, time, alloc, o)
}
