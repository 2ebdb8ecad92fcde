package profile

import (
	"fmt"

	"ccagent/profile/columns"
)

// Level is the granularity at which costs are attributed.
type Level uint8

const (
	LevelBinding Level = iota
	LevelSpan
	LevelFile
	LevelModule
	LevelPackage
	// LevelLine attributes to source lines, for the source view: a block belongs to
	// the lines on which its narrowest spans begin.
	LevelLine
	// LevelFunction is LevelBinding, but the deterministic and the non-deterministic version of
	// a Curry function are one element.
	LevelFunction
	levels
)

var levelNames = [levels]string{"binding", "span", "file", "module", "package", "line", "function"}

// Levels are the levels a user can choose, from the finest to the coarsest, but for LevelFunction,
// which differs from LevelBinding in Curry programs alone.
var Levels = []Level{LevelSpan, LevelBinding, LevelFile, LevelModule, LevelPackage}

func (l Level) String() string {
	if l < levels {
		return levelNames[l]
	}
	return "unknown"
}

// ParseLevel parses a level's name.
func ParseLevel(s string) (Level, error) {
	for _, l := range append(Levels[:len(Levels):len(Levels)], LevelFunction) {
		if levelNames[l] == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown level %q: choose span, binding, function, file, module or package", s)
}

// Kind is the kind of an element.
type Kind uint8

const (
	KindSource    Kind = iota // a source element at the requested level
	KindNear                  // code whose own name is unknown, named by the symbol before it
	KindCategory              // code without source: (GC), (STG), (RTS), (foreign), (kernel), …
	KindCollapsed             // a module or package that is shown as one element
	KindNoFile                // at span and file level: a module or package whose code has no known source position
)

// Element is the subject of one row: a span, binding, file, module or package, or a
// category of code without source.
type Element struct {
	ID      ElementID
	Level   Level
	Kind    Kind
	Name    string         // as displayed and in JSON: "Main.loadPhase", "src/A.hs:3:5-4:20", "(GC)", "module GHC.List"
	File    string         // as recorded by the compiler; empty if unknown
	FileID  columns.FileID // 0 if unknown
	Span    columns.Extent // the span itself, or the widest one of a binding, or its lowest line only; zero if unknown
	Module  string         // Haskell module; empty if unknown
	Package string
	// Program is the program that it belongs to, and that Name ends with, where the log has
	// several; empty where it has one, and for what several programs may have.
	Program string
	Binding columns.BindingID // at binding level the source binding; otherwise 0

	key elementKey
}

// ElementID numbers the elements of one level of one profile, from 0. An element has the
// same id in every selection.
type ElementID int32

// NoElement is the id that stands for no element.
const NoElement ElementID = -1

// KindName returns the kind as JSON has it: the level's name for source elements, "near",
// "category" or "collapsed" for others, and "module" or "package" for code whose file is
// unknown.
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
