package model

import (
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
	"ccagent/ui/syntax"
)

// Key names an element across queries of one profile.
type Key struct {
	Level profile.Level
	ID    profile.ElementID
}

// NoKey is the key of no element.
var NoKey = Key{ID: profile.NoElement}

// Need is all that decides what is on screen.
type Need struct {
	Event    int
	Stack    []Transform
	Selected Key
	File     columns.FileID // whose source is shown; 0 = the selection's
	Line     int            // the source cursor's line, 1-based; 0 = none
	From, To uint64         // the timeline's window, ns
	Cols     int            // the timeline's columns
	Detail   bool           // what screen 2 tells of the line is on screen
	Tree     bool           // the call tree is on screen
	Invert   bool           // leaves first
	Core     bool           // the selection's Core is on screen
	Sandwich Function       // whose callers and callees are on screen
	Centres  CentreChoice   // the cost centres on screen
	Diff     DiffChoice     // the comparison on screen
	Heap     HeapChoice     // the heap on screen
}

// Data answers a Need. It is immutable; parts that did not change are shared
// with the Data before.
type Data struct {
	Need     Need
	Summary  *Summary
	Hot      *Hot
	Overlap  map[Key]float64 // part of the total that an element shares with the selection
	Timeline *Timeline
	Source   *Source
	Line     *Line
	Tree     *Tree
	Sandwich *Sandwich
	Core     *Core
	Centres  *CostCentres
	Diff     *Diff
	Heap     *Heap
	// Problem is why a part is missing, in words; empty if nothing is.
	Problem string
}

// Summary is what the title bar tells: of the whole log, and of what is kept.
type Summary struct {
	Event, Unit     string
	Granted         string // what was measured, where it is not what was asked for
	Events          int    // in the log
	Samples, Kept   uint64
	AllWeight       uint64 // in Unit
	Weight          uint64 // of those kept
	Duration        uint64 // ns
	Lost, Throttled uint64
	Truncated       uint64  // samples whose stack was cut: a budget was spent
	Failed          uint64  // samples whose stack could not be walked to its root
	Unresolved      float64 // share of the kept weight without a symbol
	Pending         float64 // of that, what has not been looked up yet
	Nameless        bool    // nothing has: the log is being written
	Damaged         string  // what is wrong with the log; empty if nothing is
}

// Row is an element in the hot list's tree.
type Row struct {
	Key                    Key
	Name                   string // below its parent
	Full                   string // as scripts see it; of a file that stands for its module, the module
	Symbol                 string // the linker's; empty if it is no procedure's
	Package                string
	File                   columns.FileID
	Path                   string
	Line                   int // 0 = unknown
	Parent                 int // row of the file or module; −1 for those themselves
	Kids                   int
	Share, Only, Inclusive float64
	Samples                uint64
	Category               bool // code without source
	Module                 string
	Collapsed              bool // a module or package shown as one
}

// Hot is the tree of elements: a parent comes before its children.
type Hot struct {
	Rows []Row
	// LeafSum is the sum of the shares of bindings and categories: above 1
	// where samples count for several.
	LeafSum float64
}

// Timeline is activity in equal columns of time; values are fractions of the
// highest column.
type Timeline struct {
	From, To uint64
	Total    []float64 // weight a column
	Selected []float64 // of it, the selection's
	Caps     []CapActivity
	// Allocated is bytes by column as a fraction of the highest; nil if the log
	// has no event that counts them.
	Allocated []float64
	Unit      string
	PerCol    float64 // weight of the highest column
	// What the run-time system told; none of it depends on the transforms.
	*Scheduler
	// SelectedShare is the selection's part of the kept weight within the window.
	SelectedShare float64
}

// Scheduler is what a run-time system told of a window of time, by column.
type Scheduler struct {
	RTS     []CapActivity // parts of a column's time
	Threads *timeline.ThreadCounts
	Markers []columns.Marker // in the window, by time
}

// CapActivity is what a capability did, by column.
type CapActivity struct {
	Cap  int // −1 for samples on no capability
	Name string
	Run  []float64 // fraction of the column's time or of the busiest column's samples
	GC   []float64
}

// Source is a file with its heat.
type Source struct {
	File    columns.FileID
	Path    string
	Problem string // no text, or newer than the binary
	Lines   []string
	Tokens  [][]syntax.Token
	Heat    map[int]LineHeat // by line, 1-based
	Hottest []int            // lines by falling share
}

// LineHeat is what a line cost.
type LineHeat struct {
	Share, Only float64
	Causes      []Cause // at most theme.Causes, by falling share
	More        int     // causes left out
}

// Cause is something that code of a line is attributed to.
type Cause struct {
	Letter  string
	Name    string
	Share   float64
	Only    float64
	Span    columns.Extent // on this line; zero if elsewhere
	Path    string         // where it is, if in another file
	Key     Key
	Binding Key // the source binding that contains it; NoKey if unknown
}

// Line is what screen 2 tells of the line under the cursor.
type Line struct {
	File        columns.FileID
	Number      int
	Share, Only float64
	Samples     uint64
	Causes      []Cause // its spans
	Lines       []Cause // other lines that share its samples
	Also        []Cause // bindings that share its samples
	Blocks      []Block // that its samples lie in
}

// Tree is the call tree, or with Invert the callers of each leaf.
type Tree struct {
	Invert bool
	Nodes  []TreeNode // parents before their children; 0 is the root
}

// TreeNode is a function in a context.
type TreeNode struct {
	Name        string
	Path        string
	Line        int
	File        columns.FileID
	Module      string
	Package     string
	Collapsed   bool   // a module or package shown as one
	Symbol      string // raw
	Detail      string // what GHC made of it
	Category    bool   // no function: a category or an explanation
	Parent      int    // −1 for the root
	Kids        []int32
	Self, Total float64
	Forced      float64 // part of Total that evaluates what the frame above forced
	Samples     uint64
}

// Block is a stretch of code that a line was made into.
type Block struct {
	Name   string // the procedure
	Detail string
	Symbol string
	Lo, Hi uint64 // 0 of code without blocks
	Own    bool   // it has notes of its own
	Share  float64
}
