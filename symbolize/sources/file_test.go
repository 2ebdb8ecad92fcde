package sources

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"ccagent/eventlog"
)

// Without its text, a file's bindings are named by the outermost note at a position and
// the procedures of that note. What is local to a method is in its instance although its name does not say so.
func TestOutlineNamesBindings(t *testing.T) {
	o := NewOutline(
		[]Extent{{10, 1, 12, 20}, {11, 5, 11, 9}, {20, 1, 22, 8}, {30, 3, 31, 4}, {40, 3, 41, 9}, {50, 3, 50, 9}},
		[]Name{
			{11, 5, "heavy.go", ""}, {25, 1, "light", ""}, {30, 3, "show", ""},
			{40, 3, "area.go", ""}, {40, 10, "area", "HasAreaShape"}, {50, 3, "area", "HasAreaCircle"}, {50, 5, "pi", ""},
		},
	)
	if len(o.Tops) != 5 {
		t.Fatalf("outermost notes: %v", o.Tops)
	}
	f := File{outline: o, isClass: func(name string) bool { return name == "HasArea" }}
	for at, want := range map[[2]uint32]string{
		{10, 1}: "heavy", {11, 7}: "heavy", {21, 2}: "", {26, 9}: "light", {30, 5}: "show", {1, 1}: "",
		{40, 4}: "area (instance HasArea Shape)", {41, 2}: "area (instance HasArea Shape)", {50, 6}: "area (instance HasArea Circle)",
	} {
		if got := f.Binding(at[0], at[1]); got != want {
			t.Errorf("line %d, column %d is in %q, want %q", at[0], at[1], got, want)
		}
	}
}

// The top of a path of declarations is its first name, which an operator's may hold dots.
func TestTop(t *testing.T) {
	for path, want := range map[string]string{
		"heavy.go.step": "heavy", "heavy": "heavy", ".": ".", ".+.": ".+.", ".+.go": ".+", "_x.y": "_x", "": "",
	} {
		if got := Top(path); got != want {
			t.Errorf("top of %q is %q, want %q", path, got, want)
		}
	}
}

// A module is guessed from the capitalised end of its file's path.
func TestModuleOfPath(t *testing.T) {
	for path, want := range map[string]string{"src/Data/Map.hs": "Data.Map", "Main.hs": "Main", "/A/src/x.hs": ""} {
		if got := ModuleOfPath(path); got != want {
			t.Errorf("%s is module %q, want %q", path, got, want)
		}
	}
}

// A source is looked for in the program's root directory, then in ours, then in the
// folders that the user named; one that is newer than the binary comes with a warning.
func TestFindOrder(t *testing.T) {
	var asked []string
	built := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	f := &Finder{Root: 5, Dirs: []string{"/extra"}, Built: built, Read: func(ref Ref, _ int64) (Content, error) {
		p := ref.Path()
		if ref.InRoot {
			p = "root:" + p
		}
		asked = append(asked, p)
		switch p {
		case "/extra/A.hs":
			return Content{Text: []byte("a"), ModTime: built.Add(time.Hour)}, nil
		case "/src/B.hs":
			return Content{}, errors.New("not allowed")
		}
		return Content{}, fs.ErrNotExist
	}}
	got, problem := f.Find("A.hs", []string{"/src", "relative"}, nil)
	if want := "root:/src/A.hs /src/A.hs /extra/A.hs"; strings.Join(asked, " ") != want || string(got.Text) != "a" || !strings.Contains(problem, "newer") {
		t.Errorf("asked for %q, want %q; %q", asked, want, problem)
	}
	if _, problem := f.Find("B.hs", []string{"/src"}, nil); problem != "not allowed" {
		t.Errorf("a file that may not be read: %q", problem)
	}
	if _, problem := f.Find("C.hs", []string{"/src"}, nil); problem != "source not found" {
		t.Errorf("a file that is not there: %q", problem)
	}
}

// A file is written once with all its text, in pieces, and without it where the log holds
// enough or embeds none.
func TestLogWritesText(t *testing.T) {
	long := []byte(strings.Repeat("x", eventlog.MaxTextPart+7))
	for _, embed := range []bool{true, false} {
		var text []byte
		var files []eventlog.File
		l := NewLog(func(e eventlog.Event) error {
			switch e := e.(type) {
			case *eventlog.File:
				files = append(files, *e)
			case *eventlog.FileText:
				if e.File != files[len(files)-1].ID || int(e.Offset) != len(text) {
					t.Errorf("text of file %d at %d after %d bytes", e.File, e.Offset, len(text))
				}
				text = append(text, e.Text...)
			}
			return nil
		}, 7, embed)
		id, err := l.Write("A.hs", long, "")
		if err != nil || id != 8 || len(files) != 1 || l.Files != 1 {
			t.Fatalf("file %d, %v; %+v", id, err, files)
		}
		if embed != (string(text) == string(long)) || embed != (files[0].TextSize == uint64(len(long))) || embed != (l.Embedded == 1) {
			t.Errorf("embedding %v: %d bytes of text, %d declared", embed, len(text), files[0].TextSize)
		}
	}
}
