package core

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ccagent/symbolize/coredump"
)

// Dump is a file that may hold a module's Core.
type Dump struct {
	Path    string
	Size    int64
	ModTime time.Time
}

const (
	maxDumpEntries = 200_000 // files and folders that are looked at in a folder's tree
	maxDumpDepth   = 16
	maxDumps       = 20_000
)

// ErrManyFiles is returned when a folder's tree has too many files to search them all.
var ErrManyFiles = errors.New("too many files to look through all of them")

// FindDumps lists the Core dumps in a folder's tree, the nearest first. Like
// ReadSourceFile it is to run with the rights of the log's owner. Links are not
// followed, other file systems not entered; of hidden folders only Stack's.
// What cannot be read is passed over. The dumps that were found are good also
// where the error is ErrManyFiles: there may be more.
func FindDumps(dir string) ([]Dump, error) {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
		return nil, nil // a folder that nobody builds in
	}
	root, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("look for Core: %w", err)
	}
	device := deviceOf(root)
	type folder struct {
		path  string
		depth int
	}
	var out []Dump
	left := maxDumpEntries
	for queue := []folder{{filepath.Clean(dir), 0}}; len(queue) > 0; queue = queue[1:] {
		f, err := os.OpenFile(queue[0].path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		for {
			entries, err := f.ReadDir(1024)
			for _, e := range entries {
				left--
				name := e.Name()
				switch {
				case e.IsDir() && enterable(name) && queue[0].depth < maxDumpDepth:
					info, err := e.Info()
					if err == nil && deviceOf(info) == device {
						queue = append(queue, folder{filepath.Join(queue[0].path, name), queue[0].depth + 1})
					}
				case e.Type().IsRegular() && strings.HasSuffix(name, coredump.Suffix):
					if info, err := e.Info(); err == nil {
						out = append(out, Dump{filepath.Join(queue[0].path, name), info.Size(), info.ModTime()})
					}
				}
			}
			if left <= 0 || len(out) >= maxDumps {
				f.Close()
				return out, ErrManyFiles
			}
			if err != nil || len(entries) == 0 {
				break
			}
		}
		f.Close()
	}
	return out, nil
}

func enterable(name string) bool {
	return !strings.HasPrefix(name, ".") && name != "node_modules" || name == ".stack-work"
}

func deviceOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}

// likeness is how many components, from the last, a dump's path shares with a
// source's, without their suffixes; GHC keeps the source's folders under
// -dumpdir. A dump may also be named by its module.
func (d *Dump) likeness(source, module string) int {
	p := strings.TrimSuffix(d.Path, coredump.Suffix)
	if module != "" && path.Base(p) == module {
		return 1 + strings.Count(module, ".")
	}
	have, want := strings.Split(p, "/"), strings.Split(strings.TrimSuffix(source, path.Ext(source)), "/")
	n := 0
	for n < len(have) && n < len(want) && have[len(have)-1-n] == want[len(want)-1-n] {
		n++
	}
	return n
}
