package model

import (
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/reasons"
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

// Data answers a Query. It is immutable; parts that did not change are shared
// with the Data before.
type Data struct {
	Query   Query
	Summary *Summary
	Hot     *Hot
	Overlap map[Key]float64 // part of the total that an element shares with the selection
	// Sentence says in words where the kept weight is; Reason explains the selected element, nil of
	// one that has source.
	Sentence *reasons.Sentence
	Reason   *reasons.Reason
	Lanes    *Lanes  // of the query's window; nil without one
	Source   *Source // of the query's file; nil without one
	Part     any     // the answer of the query's Part
	// Problem is why a part is missing, in words; empty if nothing is.
	Problem string
}

// Summary is what the title bar shows: figures of the whole log, and of the samples kept.
type Summary struct {
	Event         string
	Title         string // of the event, for readers
	Events        int    // in the log
	Samples, Kept uint64
	Effective     float64 // what those kept are worth by their weights
	AllWeight     uint64  // in the event's unit
	Weight        uint64  // of those kept
	Duration      uint64  // ns
	Lost          uint64
	Truncated     uint64  // samples whose stack was cut: a budget was spent
	Failed        uint64  // samples whose stack could not be walked to its root
	Unresolved    float64 // share of the kept weight without a symbol
	Pending       float64 // of that, what has not been looked up yet
	Nameless      bool    // nothing has: the log is being written
	Damaged       string  // what is wrong with the log; empty if nothing is
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
	// PlusMinus is how far Share's 95 % interval reaches to its further side. Tied: by share,
	// the order after the sibling listed before is within noise.
	PlusMinus float64
	Tied      bool
	Alike     uint64 // the same for rows with the same samples; 0 without any
	Category  bool   // code without source
	Module    string
	Collapsed bool // a module or package shown as one
}

// Hot is the tree of elements: a parent comes before its children.
type Hot struct {
	Rows []Row
	// LeafSum is the sum of the shares of bindings and categories: above 1
	// where samples count for several.
	LeafSum float64
}

// Lanes is activity in equal columns of time; values are fractions of the
// highest column.
type Lanes struct {
	Total    []float64 // weight a column
	Selected []float64 // of it, the selection's
	Caps     []CapActivity
	// Scheduler comes from the run-time system and does not depend on the transforms.
	*Scheduler
	// SelectedShare is the selection's part of the kept weight within the window.
	SelectedShare float64
	// Missing are the columns of which the log says nothing; nil if there are none.
	Missing []bool
}

// Scheduler is what the run-time system reported for a window of time, by column.
type Scheduler struct {
	RTS     []CapActivity // parts of a column's time
	Threads *timeline.ThreadCounts
	// NotWatched are the columns in which threads or collections were not watched; nil if there are none.
	NotWatched []bool
	Markers    []columns.Marker // in the window, by time
}

// CapActivity is what a capability did, by column.
type CapActivity struct {
	Cap  int // −1 for samples on no capability
	Name string
	Run  []float64 // fraction of the column's time or of the busiest column's samples
	GC   []float64
	// NotWatched are the columns of which it is not known what the capability did; nil if there
	// are none.
	NotWatched []bool
	// Unseen are the columns without a sample that need not have been idle, since they are shorter than
	// the time between two samples; nil if there are none.
	Unseen []bool
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
	// PlusMinus and OnlyPlusMinus are how far the 95 % intervals of Share and Only reach to their further side.
	PlusMinus, OnlyPlusMinus float64
	Causes                   []Cause // at most MaxCauses, by falling share
}

// Cause is something that code of a line is attributed to.
type Cause struct {
	Letter string
	Name   string
	Share  float64
	// PlusMinus is how far Share's 95 % interval reaches to its further side.
	PlusMinus float64
	Span      columns.Extent // on this line; zero if elsewhere
	Key       Key
	Binding   Key // the source binding that contains it; NoKey if unknown
}
