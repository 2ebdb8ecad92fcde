package widget

// Glyphs is the set of characters that drawings are made of.
type Glyphs struct {
	ASCII                  bool
	H, V                   string
	TL, TR, BL, BR         string // corners
	TeeL, TeeR, TeeT, TeeB string // where borders meet: opening right, left, down, up
	Cross                  string
	Full, Light            string    // a bar's two parts
	Eighths                [9]string // the left part of a column; of Unicode alone
	Least                  string    // a bar of less than half a column
	Steps                  [9]string // levels of a column, lowest is empty
	Open, Closed, Guide    string    // tree
	Pointer                string    // the selected row
	Shares                 string    // shares samples with the selection
	Tied                   string    // in an order within noise
	More                   string    // something was cut off
	moreWidth              int       // columns of More
	EdgeL, EdgeR           string    // of the selected time range
	Run, GC, Both, Idle    string    // what a capability does
	NotWatched             string    // nobody knows what it did
	Tick                   string    // a time on the axis
	Cursor                 string    // on the time axis
	Bookmark               string    // on the time axis
	Then                   string    // between the steps of a breadcrumb
	Heat                   [9]string // by heat level
}

// Unicode draws with box-drawing and block characters.
func Unicode() *Glyphs {
	return &Glyphs{
		H: "─", V: "│", TL: "┌", TR: "┐", BL: "└", BR: "┘", TeeL: "├", TeeR: "┤", TeeT: "┬", TeeB: "┴", Cross: "┼",
		Full: "█", Light: "▒", Least: "▏",
		Eighths: [9]string{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"},
		Steps:   [9]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
		Open:    "▾", Closed: "▸", Guide: "│", Pointer: "▶", Shares: "=", Tied: "≈", More: "…", moreWidth: 1,
		EdgeL: "[", EdgeR: "]", Run: "▄", GC: "G", Both: "g", Idle: "·", NotWatched: "╌", Tick: "╵", Cursor: "▼", Bookmark: "◆", Then: "›",
		Heat: [9]string{" ", "·", "▁", "▂", "▃", "▄", "▅", "▆", "█"},
	}
}

// ASCII draws with ASCII alone; what a log contains besides shows as "?".
func ASCII() *Glyphs {
	return &Glyphs{
		ASCII: true,
		H:     "-", V: "|", TL: "+", TR: "+", BL: "+", BR: "+", TeeL: "+", TeeR: "+", TeeT: "+", TeeB: "+", Cross: "+",
		Full: "#", Light: "~", Least: ".",
		Steps: [9]string{" ", ".", ":", "-", "=", "+", "*", "#", "@"},
		Open:  "v", Closed: ">", Guide: "|", Pointer: ">", Shares: "=", Tied: "~", More: "..", moreWidth: 2,
		EdgeL: "[", EdgeR: "]", Run: "R", GC: "G", Both: "g", Idle: ".", NotWatched: "~", Tick: "|", Cursor: "V", Bookmark: "*", Then: ">",
		Heat: [9]string{" ", ".", ":", "-", "=", "+", "*", "#", "@"},
	}
}
