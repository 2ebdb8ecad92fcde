package boundary

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// streams lists the files that may use the process's standard output and error, each with
// the purpose. All other files print through a writer that they are passed.
var streams = map[string]string{
	"cmd/ccview/main.go":        "puts them behind printable.Writer",
	"cmd/ccagent/main.go":       "puts them behind printable.Writer",
	"internal/sandbox/child.go": "a child's, which its parent reads",
	"agent/target/target.go":    "the profiled program's own",
	"ui/run.go":                 "asks whether it is a terminal, and prints one line by printable.Line",
}

// All output of both commands goes through a writer that replaces control characters: no
// other file uses or prints to standard output or error.
func TestStandardStreamsAreUsedInOnePlace(t *testing.T) {
	used := map[string]bool{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if tool := slices.Contains([]string{"scripts", "bpf/replay", "internal/hwtest", "internal/ghc/header", "testdata"}, rel); tool || strings.HasPrefix(d.Name(), ".") && path != root {
				return fs.SkipDir // development commands
			}
			return nil
		case !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") || strings.HasSuffix(rel, "_gen.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, _ := sel.X.(*ast.Ident)
			if pkg == nil {
				return true
			}
			switch name := pkg.Name + "." + sel.Sel.Name; name {
			case "os.Stdout", "os.Stderr":
				if used[rel] = true; streams[rel] == "" {
					t.Errorf("%s uses %s: print through the command's printable.Writer", rel, name)
				}
			case "fmt.Print", "fmt.Printf", "fmt.Println":
				t.Errorf("%s uses %s: print through the command's printable.Writer", rel, name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range streams {
		if !used[file] {
			t.Errorf("%s does not use the standard streams any more: take it off the list", file)
		}
	}
}
