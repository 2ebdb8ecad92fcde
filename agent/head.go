package agent

import (
	"context"
	"fmt"

	"ccagent/agent/process"
	"ccagent/agent/symbols"
	"ccagent/eventlog"
)

// loggedArgs are the program's arguments, or its path alone where they may be secret. Its
// own name for itself may hold them too.
func (c *capture) loggedArgs() []string {
	if c.opts.NoArgs {
		return []string{c.target.Path}
	}
	return c.target.Args
}

// describe prepares the log's head, which is written when its time 0 is known, and warns about what
// will be missing.
func (c *capture) describe(im *process.Image) {
	e := &eventlog.Capture{
		AgentVersion: c.opts.AgentVersion,
		PID:          uint32(c.target.PID),
		UID:          c.who.UID,
		Program:      c.target.Path,
		Args:         c.loggedArgs(),
		TargetIDs:    append([]uint32{c.owner.UID, c.owner.GID}, c.owner.Groups...),
	}
	if !c.target.Started() {
		e.Mode = eventlog.CaptureAttach
	}
	if im.Exe != nil {
		b := im.Exe.Binary
		if im.RTS != nil {
			b = im.RTS.Binary
		}
		e.GHCVersion, e.Way = b.GHCVersion, string(b.Way)
		e.LayoutAssumed = im.Assumed
		c.warnAboutBinary(im, e.LayoutAssumed)
	}
	for _, asked := range c.asked.Events {
		d := &asked.Def
		c.sum.Events = append(c.sum.Events, EventSummary{Requested: d.Requested, Granted: d.Granted, Fallback: d.Fallback, Unit: d.Unit,
			Rate: d.Rate, Period: d.RateMode == eventlog.RatePeriod})
	}
	c.head = e
}

func (c *capture) warnAboutBinary(im *process.Image, assumed bool) {
	exe := &im.Exe.Binary
	switch {
	case im.Exe.Problem != nil:
		c.log.Warn(fmt.Sprintf("%v; its code will have no names", im.Exe.Problem))
	case !exe.GHC && im.RTS == nil: // it may be a script, or yet execute one: see warnWithoutHaskell
		c.foreign, c.packer = im.Exe.Path, im.Exe.Binary.Packer
	case assumed:
		c.log.Warn(fmt.Sprintf("GHC version %q is not one that is known: its stacks are walked by the newest known layout", exe.GHCVersion))
	}
	switch {
	case !exe.GHC:
	case !exe.HasSymtab && (exe.HasMiniDebug || c.hasDebugFile(im.Exe)):
	case !exe.HasSymtab:
		c.log.Warn(fmt.Sprintf("%s is stripped: its Haskell code will be known by module at most, other code will have no names; install it unstripped (cabal: --disable-executable-stripping)", im.Exe.Path))
	case !exe.HasNotes && !exe.HasIPE: // with a map the symboliser reports what is missing
		c.log.Warn(fmt.Sprintf("%s has no source notes: names will be those of compiled code; build it with ghc -g3 (see ccagent doctor %s)", im.Exe.Path, im.Exe.Path))
	}
}

func (c *capture) hasDebugFile(mod *process.Module) bool {
	f := symbols.DebugFile(context.Background(), mod, c.owner, nil)
	if f != nil {
		f.Close()
	}
	return f != nil
}

// warnWithoutHaskell warns, at the end, if neither the target nor what it executed is a Haskell
// program.
func (c *capture) warnWithoutHaskell() {
	if c.foreign != "" && !c.engine.Processes.Haskell {
		what := "is not a Haskell program compiled by GHC"
		if c.packer != "" {
			what = "is packed by " + c.packer + ", so that its code belongs to no file (upx -d unpacks it)"
		}
		c.log.Warn(fmt.Sprintf("%s %s, and executed no Haskell program: only C code was sampled", c.foreign, what))
	}
}
