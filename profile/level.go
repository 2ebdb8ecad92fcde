package profile

import (
	"fmt"

	"ccagent/profile/columns"
)

// Level is the grain at which costs are attributed.
type Level uint8

const (
	LevelBinding Level = iota
	LevelSpan
	LevelFile
	LevelModule
	LevelPackage
	// LevelLine attributes to source lines, for the source view: a block belongs
	// to the lines on which the narrowest of its spans begin.
	LevelLine
	levels
)

var levelNames = [levels]string{"binding", "span", "file", "module", "package", "line"}

// Levels are the levels a user can choose, from the finest to the coarsest.
var Levels = []Level{LevelSpan, LevelBinding, LevelFile, LevelModule, LevelPackage}

func (l Level) String() string {
	if l < levels {
		return levelNames[l]
	}
	return "unknown"
}

// ParseLevel reads a level's name.
func ParseLevel(s string) (Level, error) {
	for _, l := range Levels {
		if levelNames[l] == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown level %q: choose span, binding, file, module or package", s)
}

// Kind says what an element is.
type Kind uint8

const (
	KindSource    Kind = iota // something in the source, at the level asked for
	KindNear                  // code of a module whose own name is not known, only that of the symbol before it
	KindCategory              // code without source: (GC), (STG), (foreign), (kernel), (unresolved), (hidden)
	KindCollapsed             // a module or package that is shown as one
	KindNoFile                // at the levels of spans and files: code of a module, or package, whose place in the source is not known
)

// Element is one row's subject: a span, binding, file, module or package, or a
// category of code without source.
type Element struct {
	ID      ElementID
	Level   Level
	Kind    Kind
	Name    string         // as shown and as scripts see it: "Main.loadPhase", "src/A.hs:3:5-4:20", "(GC)", "module GHC.List"
	File    string         // path as compiled; empty if unknown
	FileID  columns.FileID // 0 if unknown
	Span    columns.Extent // of the span, or the widest one of a binding; zero if unknown
	Module  string         // Haskell module; empty if unknown
	Package string
	Binding columns.BindingID // the source binding at binding level; else 0

	key elementKey
}

// ElementID numbers the elements of one level of one profile, from 0. The same
// element has the same id in every selection.
type ElementID int32

// NoElement is the id of no element.
const NoElement ElementID = -1

// KindName is the kind as scripts see it: the level's name for what is in the
// source, "near", "category" or "collapsed" for the rest, and of code whose file is not
// known "module" or "package".
func (e *Element) KindName() string {
	switch e.Kind {
	case KindNear:
		return "near"
	case KindCategory:
		return "category"
	case KindCollapsed:
		return "collapsed"
	case KindNoFile:
		if e.Module == "" {
			return "package"
		}
		return "module"
	default:
		return e.Level.String()
	}
}
