package core

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Dumps are found anywhere below a folder, nearest first, without following links.
func TestFindDumps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"B.dump-simpl", "a/b/C.dump-simpl", "a/x.hs", ".git/D.dump-simpl", "node_modules/E.dump-simpl", "dist-newstyle/F.dump-simpl"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Neither a link to a folder nor one to a file is followed.
	if err := os.Symlink(dir, filepath.Join(dir, "a", "loop")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "G.dump-simpl")); err != nil {
		t.Fatal(err)
	}
	dumps, err := FindDumps(dir)
	var names []string
	for _, d := range dumps {
		rel, _ := filepath.Rel(dir, d.Path)
		names = append(names, rel)
	}
	if want := []string{"B.dump-simpl", "dist-newstyle/F.dump-simpl", "a/b/C.dump-simpl"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, %v; want %q", names, err, want)
	}
	for _, bad := range []string{"", "relative", "/", "/.."} {
		if dumps, _ := FindDumps(bad); dumps != nil {
			t.Errorf("%q is looked through: %v", bad, dumps)
		}
	}
}

// A dump is taken for a module's by the path components that it shares with the source.
func TestDumpLikeness(t *testing.T) {
	for _, c := range []struct {
		dump, source, module string
		want                 int
	}{
		{"/p/dist/src/Foo/Bar.dump-simpl", "src/Foo/Bar.hs", "Foo.Bar", 3},
		{"/p/dist/Foo/Bar.dump-simpl", "src/Foo/Bar.hs", "Foo.Bar", 2},
		{"/p/dist/Foo.Bar.dump-simpl", "src/Foo/Bar.hs", "Foo.Bar", 2},
		{"/p/dist/Baz/Bar.dump-simpl", "src/Foo/Bar.hs", "Foo.Bar", 1},
		{"/p/dist/Bar2.dump-simpl", "src/Foo/Bar.hs", "Foo.Bar", 0},
		{"/p/Parser.dump-simpl", "Parser.y", "Parser", 1},
	} {
		d := Dump{Path: c.dump}
		if got := d.likeness(c.source, c.module); got != c.want {
			t.Errorf("%s is like %s in %d components, want %d", c.dump, c.source, got, c.want)
		}
	}
}
