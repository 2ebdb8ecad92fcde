package sources

import (
	"fmt"

	"ccagent/eventlog"
)

// Log writes source files into a log.
type Log struct {
	emit  func(eventlog.Event) error
	embed bool // their text too
	last  uint32
	bytes int // of text
	// Files counts the files that were written, Embedded those with their text.
	Files, Embedded int
	lines           map[string]uint32 // files of line tables
}

// NewLog makes a Log whose files follow the id after. embed writes their text too.
func NewLog(emit func(eventlog.Event) error, after uint32, embed bool) *Log {
	return &Log{emit: emit, last: after, embed: embed, lines: map[string]uint32{}}
}

// Write writes a file, and its text while the log has room, and gives its id.
func (l *Log) Write(name string, text []byte, problem string) (uint32, error) {
	l.last++
	f := eventlog.File{ID: l.last, Path: eventlog.CleanName(name), Problem: eventlog.CleanName(problem)}
	switch {
	case !l.embed:
		text = nil
	case l.bytes+len(text) > maxTotal:
		text, f.Problem = nil, "left out: the log holds enough source text already"
	}
	f.TextSize = uint64(len(text))
	l.bytes += len(text)
	l.Files++
	if err := l.emit(&f); err != nil {
		return 0, err
	}
	if len(text) > 0 {
		l.Embedded++
	}
	for off := 0; off < len(text); off += eventlog.MaxTextPart {
		piece := eventlog.FileText{File: f.ID, Offset: uint64(off), Text: text[off:min(len(text), off+eventlog.MaxTextPart)]}
		if err := l.emit(&piece); err != nil {
			return 0, err
		}
	}
	return f.ID, nil
}

// OfLine gives the id of a file that a line table names, 0 for no name.
func (l *Log) OfLine(finder *Finder, compDir, file string, sum []byte) (uint32, error) {
	if file == "" {
		return 0, nil
	}
	key := fmt.Sprint(finder.Root) + "\x00" + compDir + "\x00" + file
	if id, ok := l.lines[key]; ok {
		return id, nil
	}
	content, problem := finder.Find(file, []string{compDir}, sum)
	id, err := l.Write(file, content.Text, problem)
	l.lines[key] = id
	return id, err
}
