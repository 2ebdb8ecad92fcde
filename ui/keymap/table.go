package keymap

// Action is what a key asks for.
type Action string

// The actions that screens share. A screen that cannot do one says why.
const (
	Up       Action = "up"
	Down     Action = "down"
	Left     Action = "left"
	Right    Action = "right"
	Top      Action = "top"
	Bottom   Action = "bottom"
	HalfUp   Action = "half-page-up"
	HalfDown Action = "half-page-down"
	PageUp   Action = "page-up"
	Mark     Action = "mark"
	PageDown Action = "page-down"

	NextPane   Action = "next-pane"
	PrevPane   Action = "previous-pane"
	Zoom       Action = "zoom"
	PrevScreen Action = "previous-screen"
	ByName     Action = "screen-by-name"
	OtherSide  Action = "other-side"
	Open       Action = "open"
	Back       Action = "back"

	Search     Action = "search"
	SearchNext Action = "search-next"
	SearchPrev Action = "search-previous"
	Filter     Action = "filter"

	Focus     Action = "focus"
	FocusExpr Action = "focus-expression"
	Drop      Action = "drop"
	Hide      Action = "hide"
	Merge     Action = "merge"
	Collapse  Action = "collapse"
	Recursion Action = "fold-recursion"
	Only      Action = "only"
	Pop       Action = "pop"
	Undo      Action = "undo"
	Redo      Action = "redo"

	Sort     Action = "sort"
	Invert   Action = "invert"
	Sandwich Action = "sandwich"
	Metric   Action = "metric"
	Base     Action = "base"
	Minimum  Action = "minimum"
	Core     Action = "core"
	Code     Action = "machine-code"
	Raw      Action = "raw-names"

	Mode    Action = "mode"
	NonZero Action = "non-zero"

	RangeFrom    Action = "range-from"
	RangeTo      Action = "range-to"
	ZoomIn       Action = "zoom-in"
	ZoomOut      Action = "zoom-out"
	ZoomFit      Action = "zoom-fit"
	PanLeft      Action = "pan-left"
	PanRight     Action = "pan-right"
	Brush        Action = "brush"
	Bookmark     Action = "bookmark"
	NextBookmark Action = "next-bookmark"

	Copy    Action = "copy"
	Edit    Action = "edit"
	Export  Action = "export"
	Suspend Action = "suspend"
	Pause   Action = "pause"
	Theme   Action = "theme"
	Reload  Action = "reload"
	Threads Action = "threads-now"
	Help    Action = "help"
	Quit    Action = "quit"
)

// The groups that screens add to: keys that open them, and before the timeline their own.
const (
	screensGroup  = "Panes and screens"
	timelineGroup = "Timeline"
)

// common are the bindings that screens share, in the order in which help and manual show
// them.
var common = []Section{
	{"Move", []Binding{
		{Up, []string{"k", "up"}, "k up", "", "up"},
		{Down, []string{"j", "down"}, "j down", "move", "down"},
		{Left, []string{"h", "left"}, "h left", "", "close a branch, or go to the one above; on the timeline and in sources, to the left"},
		{Right, []string{"l", "right"}, "l right", "", "open a branch; on the timeline and in sources, to the right"},
		{Top, []string{"g", "home"}, "g home", "", "first"},
		{Bottom, []string{"G", "end"}, "G end", "", "last"},
		{HalfDown, []string{"ctrl+d"}, "ctrl-d", "", "half a page down"},
		{HalfUp, []string{"ctrl+u"}, "ctrl-u", "", "half a page up"},
		{PageDown, []string{"pgdown"}, "pgdn", "", "a page down"},
		{Mark, []string{"space"}, "space", "", "a page down"},
		{PageUp, []string{"pgup"}, "pgup", "", "a page up"},
	}},
	{screensGroup, []Binding{
		{NextPane, []string{"tab"}, "tab", "pane", "next pane"},
		{PrevPane, []string{"shift+tab"}, "shift-tab", "", "previous pane"},
		{Zoom, []string{"z"}, "z", "zoom", "the pane on the whole screen, and back"},
		{Open, []string{"enter"}, "enter", "open", "open a branch, or an element's source"},
		{Back, []string{"esc"}, "esc", "", "back: closes a prompt, then the zoom, then the screen; never quits"},
		{PrevScreen, []string{"`"}, "`", "", "the screen before this one"},
		{ByName, []string{":"}, ":", "", "a screen by its name, or the beginning of it"},
		{OtherSide, []string{"A"}, "A", "", "of logs that are compared: the screens show A's, or B's"},
	}},
	{"Find", []Binding{
		{Search, []string{"/"}, "/", "search", "search by regular expression; all lower case ignores case"},
		{SearchNext, []string{"n"}, "n", "", "next match"},
		{SearchPrev, []string{"N"}, "N", "", "previous match"},
		{Filter, []string{"&"}, "&", "filter", "list only what matches; &! only what does not; empty lists all"},
	}},
	{"Transforms", []Binding{
		{Focus, []string{"f"}, "f", "focus", "keep only samples with the element anywhere on their stack"},
		{FocusExpr, []string{"F"}, "F", "", "keep only samples with a frame that matches a regular expression"},
		{Drop, []string{"d"}, "d", "drop", "drop the samples with the element on their stack"},
		{Hide, []string{"D"}, "D", "", "hide the element: its frames go, the samples stay"},
		{Pop, []string{"backspace"}, "backspace", "", "take the last transform off"},
		{Undo, []string{"u"}, "u", "undo", "undo the last change of the transforms"},
		{Redo, []string{"ctrl+r"}, "ctrl-r", "", "redo it"},
		{Merge, []string{"m"}, "m", "", "merge the function's frames into their callers: its cost becomes theirs"},
		{Collapse, []string{"c"}, "c", "", "show the element's module as one; again: its package"},
		{Recursion, []string{"r"}, "r", "", "fold recursion: what lies between two frames of one function goes; again: as it was"},
		{Only, []string{"T"}, "T", "", "keep only a thread, capability, process or category; several of a kind: any of them"},
	}},
	{"View of the data", []Binding{
		{Sort, []string{"s"}, "s", "sort", "sort by share, only, inclusive or name"},
		{Invert, []string{"i"}, "i", "", "turn the call tree: from the root down, or from the leaves up"},
		{Metric, []string{"t"}, "t", "event", "next event: cycles, alloc, …"},
		{Base, []string{"%"}, "%", "", "shares of the samples kept, or of all samples"},
		{Minimum, []string{"L"}, "L", "", "leave out rows below a share"},
		{Core, []string{"K"}, "K", "", "the Core of the selected element in the place of its source, and back"},
		{Code, []string{"I"}, "I", "code", "the machine code of the selected function, with the samples on each instruction"},
		{Raw, []string{"R"}, "R", "", "the linker's symbol of the selected row"},
		{Sandwich, []string{"p"}, "p", "", "sandwich: callers above and callees below the selected function"},
		{Mode, []string{"M"}, "M", "mode", "next mode"},
		{NonZero, []string{"Z"}, "Z", "", "only rows with something of their own, or all"},
	}},
	{timelineGroup, []Binding{
		{RangeFrom, []string{"["}, "[", "range", "the range begins at the cursor"},
		{RangeTo, []string{"]"}, "]", "", "the range ends at the cursor"},
		{Brush, []string{"v"}, "v", "", "brush: a range begins here and grows with the cursor; again keeps it"},
		{ZoomIn, []string{"+", "="}, "+", "", "zoom in about the cursor"},
		{ZoomOut, []string{"-"}, "-", "", "zoom out"},
		{ZoomFit, []string{"0"}, "0", "", "all of the time"},
		{PanLeft, []string{"<"}, "<", "", "earlier"},
		{PanRight, []string{">"}, ">", "", "later"},
		{Bookmark, []string{"b"}, "b", "", "bookmark the cursor's moment, or take the bookmark off"},
		{NextBookmark, []string{"B"}, "B", "", "to the next bookmark"},
	}},
	{"Out", []Binding{
		{Copy, []string{"y"}, "y", "copy", "copy the row (OSC 52: works over ssh where the terminal allows it)"},
		{Edit, []string{"e"}, "e", "", "open the line in $VISUAL or $EDITOR"},
		{Export, []string{"o"}, "o", "", "export this screen or what is kept: text, JSON, folded, pprof, speedscope, Firefox, perf"},
		{Pause, []string{"P"}, "P", "pause", "stop following a growing log for a while; again: go on"},
		{Threads, []string{"W"}, "W", "", "read what every Haskell thread does now, and who waits for whom: of a capture that this viewer runs (ccagent top)"},
		{Reload, []string{"ctrl+l"}, "ctrl-l", "", "read the log again"},
		{Suspend, []string{"ctrl+z"}, "ctrl-z", "", "suspend; fg comes back"},
		{Theme, []string{"ctrl+t"}, "ctrl-t", "", "next theme; it is remembered"},
		{Help, []string{"?"}, "?", "help", "all keys; type to search them"},
		{Quit, []string{"q", "ctrl+c"}, "q ctrl-c", "quit", "quit"},
	}},
}
