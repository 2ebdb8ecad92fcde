package eventlog

// Layouts of the capture's events and of the symbol tables; see capture.go and
// symbols.go for what the fields mean. A field appended to one of these goes to
// the end of its layout; a changed meaning, or a new field in a list's element,
// raises the version in the event's declaration (types.go).

func (*Capture) EventID() uint16 { return IDCapture }

func (e *Capture) layout(c *codec) {
	c.str(&e.AgentVersion)
	enum(c, &e.Mode)
	c.v64(&e.StartUnixNs)
	c.v32(&e.PID)
	c.v32(&e.UID)
	c.str(&e.Program)
	list(c, &e.Args, 1)
	for i := range e.Args {
		c.str(&e.Args[i])
	}
	c.done()
	c.str(&e.GHCVersion)
	c.str(&e.Way)
	c.flag(&e.LayoutAssumed)
	c.str(&e.Kernel)
	c.str(&e.Arch)
	c.str(&e.CPUModel)
	c.v32(&e.CPUs)
	list(c, &e.TargetIDs, 1)
	for i := range e.TargetIDs {
		c.v32(&e.TargetIDs[i])
	}
	c.done()
	list(c, &e.Labels, 2)
	for i := range e.Labels {
		c.str(&e.Labels[i].Key)
		c.str(&e.Labels[i].Value)
	}
	c.done()
}

func (*ThreadName) EventID() uint16 { return IDThreadName }

func (e *ThreadName) layout(c *codec) {
	c.v32(&e.PID)
	c.v64(&e.TSO)
	c.str(&e.Name)
}

func (*EventDef) EventID() uint16 { return IDEventDef }

func (e *EventDef) layout(c *codec) {
	c.v32(&e.Index)
	c.str(&e.Requested)
	c.str(&e.Granted)
	c.str(&e.Fallback)
	c.str(&e.Unit)
	enum(c, &e.RateMode)
	c.v64(&e.Rate)
}

func (*Module) EventID() uint16 { return IDModule }

func (e *Module) layout(c *codec) {
	c.v32(&e.ID)
	c.str(&e.Path)
	c.bytes(&e.BuildID)
	c.v64(&e.Size)
	c.signed(&e.ModTime)
	c.str(&e.GHCVersion)
}

func (*Mapping) EventID() uint16 { return IDMapping }

func (e *Mapping) layout(c *codec) {
	c.v32(&e.PID)
	c.v32(&e.Module)
	c.v64(&e.Start)
	c.v64(&e.End)
	c.v64(&e.Bias)
}

func (*Process) EventID() uint16 { return IDProcess }

func (e *Process) layout(c *codec) {
	enum(c, &e.Change)
	c.v32(&e.PID)
	c.v32(&e.Parent)
	c.str(&e.Comm)
	c.str(&e.Path)
}

func (*Nodes) EventID() uint16 { return IDNodes }

// A node's parent is most often the node before it, so the layout holds the
// distance to the parent (modulo 2^32) in place of the parent.
func (e *Nodes) layout(c *codec) {
	c.v32(&e.First)
	list(c, &e.Nodes, 4)
	id := e.First
	for i := range e.Nodes {
		n := &e.Nodes[i]
		distance := id - n.Parent
		c.v32(&distance)
		if !c.encoding {
			n.Parent = id - distance
		}
		enum(c, &n.Kind)
		c.v32(&n.Module)
		c.v64(&n.Addr)
		id++
	}
	c.done()
}

func (*Sample) EventID() uint16 { return IDSample }

func (*Loss) EventID() uint16 { return IDLoss }

func (e *Loss) layout(c *codec) {
	c.v32(&e.CPU)
	c.v32(&e.Event)
	enum(c, &e.Reason)
	c.v64(&e.Count)
}

func (*AgentCost) EventID() uint16 { return IDAgentCost }

func (e *AgentCost) layout(c *codec) {
	c.v64(&e.CPUNs)
	c.v64(&e.RSS)
	c.v64(&e.BPFRuns)
	c.v64(&e.BPFNs)
	c.v64(&e.Samples)
	c.v64(&e.TargetCPUNs)
	c.v64(&e.WalkMedianNs)
	c.v64(&e.WalkP99Ns)
}

func (*Overhead) EventID() uint16 { return IDOverhead }

func (e *Overhead) layout(c *codec) {
	c.v64(&e.IntervalNs)
	c.v64(&e.TargetNs)
	c.v64(&e.EventNs)
	c.v64(&e.AllocNs)
	c.v64(&e.AgentNs)
	c.v32(&e.Asked)
	c.v32(&e.EventsTaken)
	c.v32(&e.Nursery)
	c.v32(&e.Blocks)
	c.v32(&e.Large)
	c.v64(&e.ProbeHits)
	c.v32(&e.ProbeNs)
	c.v64(&e.InterruptNs)
	c.v64(&e.Interrupts)
}

func (*Warning) EventID() uint16 { return IDWarning }

func (e *Warning) layout(c *codec) { c.str(&e.Text) }

func (*CaptureEnd) EventID() uint16 { return IDCaptureEnd }

func (e *CaptureEnd) layout(c *codec) {
	enum(c, &e.Reason)
	c.str(&e.Detail)
	c.v32(&e.ExitStatus)
	c.flag(&e.HaveStatus)
}

func (*ModuleSymbols) EventID() uint16 { return IDModuleSymbols }

func (e *ModuleSymbols) layout(c *codec) {
	c.v32(&e.Module)
	c.str(&e.GHCVersion)
	c.str(&e.Way)
	c.flag(&e.HasSymtab)
	c.flag(&e.HasDWARF)
	c.flag(&e.HasNotes)
	c.flag(&e.HasIPE)
	c.str(&e.Problem)
}

func (*File) EventID() uint16 { return IDFile }

func (e *File) layout(c *codec) {
	c.v32(&e.ID)
	c.str(&e.Path)
	c.v64(&e.TextSize)
	c.str(&e.Problem)
}

func (*FileText) EventID() uint16 { return IDFileText }

func (e *FileText) layout(c *codec) {
	c.v32(&e.File)
	c.v64(&e.Offset)
	c.bytes(&e.Text)
}

func (*Binding) EventID() uint16 { return IDBinding }

func (e *Binding) layout(c *codec) {
	c.v32(&e.ID)
	c.str(&e.Symbol)
	c.str(&e.Package)
	c.str(&e.Module)
	c.str(&e.Name)
	c.v32(&e.Parent)
	c.str(&e.Detail)
	enum(c, &e.Category)
	c.v32(&e.Program)
}

func (*Span) EventID() uint16 { return IDSpan }

func (e *Span) layout(c *codec) {
	c.v32(&e.ID)
	c.v32(&e.File)
	c.v32(&e.Line)
	c.v32(&e.Col)
	c.v32(&e.EndLine)
	c.v32(&e.EndCol)
	c.v32(&e.Binding)
}

func (*Block) EventID() uint16 { return IDBlock }

func (e *Block) layout(c *codec) {
	c.v32(&e.ID)
	c.v32(&e.Module)
	c.v64(&e.Lo)
	c.v64(&e.Hi)
	c.v32(&e.Binding)
	list(c, &e.Enclosing, 1)
	for i := range e.Enclosing {
		c.v32(&e.Enclosing[i])
	}
	c.done()
	list(c, &e.Causes, 2)
	for i := range e.Causes {
		c.v32(&e.Causes[i].Span)
		c.v32(&e.Causes[i].Distance)
	}
	c.done()
}

func (*Locations) EventID() uint16 { return IDLocations }

func (e *Locations) layout(c *codec) {
	c.v32(&e.Module)
	list(c, &e.Locations, 7)
	for i := range e.Locations {
		l := &e.Locations[i]
		c.v64(&l.Addr)
		c.v32(&l.Block)
		c.v32(&l.Binding)
		c.v64(&l.Offset)
		enum(c, &l.Quality)
		enum(c, &l.Category)
		list(c, &l.Lines, 3)
		for j := range l.Lines {
			c.v32(&l.Lines[j].Binding)
			c.v32(&l.Lines[j].File)
			c.v32(&l.Lines[j].Line)
		}
		c.done()
	}
	c.done()
}

func (*Core) EventID() uint16 { return IDCore }

func (e *Core) layout(c *codec) {
	c.v32(&e.ID)
	c.v32(&e.Binding)
	c.v32(&e.File)
	c.str(&e.Name)
	c.str(&e.Dump)
	c.v32(&e.Line)
	c.v64(&e.TextSize)
	c.str(&e.Problem)
	list(c, &e.Notes, 5)
	for i := range e.Notes {
		n := &e.Notes[i]
		c.v32(&n.Span)
		c.v32(&n.Line)
		c.v32(&n.Col)
		c.v32(&n.EndLine)
		c.v32(&n.EndCol)
	}
	c.done()
	list(c, &e.Also, 1)
	for i := range e.Also {
		c.v32(&e.Also[i])
	}
	c.done()
}

func (*CoreText) EventID() uint16 { return IDCoreText }

func (e *CoreText) layout(c *codec) {
	c.v32(&e.Core)
	c.v64(&e.Offset)
	c.bytes(&e.Text)
}

func (*RTSProbes) EventID() uint16 { return IDRTSProbes }

func (e *RTSProbes) layout(c *codec) {
	c.str(&e.Group)
	c.str(&e.Problem)
	c.v32(&e.Sites)
	c.v64(&e.Hits)
	c.v64(&e.Records)
	c.v64(&e.Dropped)
	c.v64(&e.CostNs)
	c.v64(&e.OutNs)
	c.v64(&e.Missed)
}

func (*Unrecorded) EventID() uint16 { return IDUnrecorded }

func (e *Unrecorded) layout(c *codec) { c.v64(&e.Ns) }

func (*RTSWatch) EventID() uint16 { return IDRTSWatch }

func (e *RTSWatch) layout(c *codec) {
	c.str(&e.Group)
	c.flag(&e.Watched)
}

func (*EventRate) EventID() uint16 { return IDEventRate }

func (e *EventRate) layout(c *codec) {
	c.v32(&e.Event)
	c.v64(&e.Rate)
	c.v32(&e.InterruptNs)
	c.v32(&e.SampleNs)
}

func (*EventCount) EventID() uint16 { return IDEventCount }

func (e *EventCount) layout(c *codec) {
	c.v32(&e.Event)
	c.v64(&e.Value)
	c.v64(&e.EnabledNs)
	c.v64(&e.RunningNs)
}

func (*Sampling) EventID() uint16 { return IDSampling }

func (e *Sampling) layout(c *codec) {
	c.v32(&e.Event)
	enum(c, &e.Method)
	c.v32(&e.CPUs)
	c.v64(&e.Others)
	c.v64(&e.CPUNs)
	c.v64(&e.UnsampledNs)
	c.v64(&e.InStepNs)
	c.v64(&e.TotalError)
	c.v32(&e.TickHz)
	c.v32(&e.EventHz)
	c.v64(&e.Aside)
	c.v64(&e.UnwatchedLeastNs)
	c.v64(&e.UnwatchedMostNs)
}
