package snapshot

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/tools/txtar"
)

// Recorded is one situation's snapshot and its golden stack as text.
type Recorded struct {
	Name     string
	Snapshot *Snapshot
	Golden   []byte
}

// WriteArchives writes what was recorded of one build: PATH.zip with NAME.snap for each
// situation, and PATH.txtar with NAME.txt, the golden stacks, which a diff shows as text.
// Equal snapshots give equal bytes.
func WriteArchives(path string, recorded []Recorded) error {
	var snapshots bytes.Buffer
	var goldens txtar.Archive
	z := zip.NewWriter(&snapshots)
	for _, r := range recorded {
		w, err := z.Create(r.Name + ".snap")
		if err != nil {
			return fmt.Errorf("write snapshots: %w", err)
		}
		if _, err := w.Write(r.Snapshot.Encode()); err != nil {
			return fmt.Errorf("write snapshots: %w", err)
		}
		goldens.Files = append(goldens.Files, txtar.File{Name: r.Name + ".txt", Data: r.Golden})
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write snapshots: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".zip", snapshots.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path+".txtar", txtar.Format(&goldens), 0o644)
}

// OpenArchives opens what WriteArchives wrote: the folder of PATH.zip and that of
// PATH.txtar.
func OpenArchives(path string) (snapshots, goldens fs.FS, err error) {
	packed, err := os.ReadFile(path + ".zip")
	if err != nil {
		return nil, nil, err
	}
	if snapshots, err = zip.NewReader(bytes.NewReader(packed), int64(len(packed))); err != nil {
		return nil, nil, fmt.Errorf("open %s.zip: %w", path, err)
	}
	text, err := txtar.ParseFile(path + ".txtar")
	if err != nil {
		return nil, nil, err
	}
	if goldens, err = txtar.FS(text); err != nil {
		return nil, nil, fmt.Errorf("open %s.txtar: %w", path, err)
	}
	return snapshots, goldens, nil
}
