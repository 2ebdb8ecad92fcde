package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"ccagent/ui/screen"
	"ccagent/ui/theme"
)

// settings persist from one run to the next.
type settings struct {
	Theme string `json:"theme,omitempty"` // as chosen with its key; empty: by the terminal
	Sort  string `json:"sort,omitempty"`  // of the hot list
	Seen  bool   `json:"seen"`            // the hint of the first run
	// Bookmarks are those of the logs that had any, the newest last.
	Bookmarks []marked `json:"bookmarks,omitempty"`
}

// maxSettings bounds the file's size.
const maxSettings = 64 << 10

// store is where settings are kept: in the user's config directory, under sudo
// in that of the user who called it, with that user's rights.
type store struct {
	path     string
	uid, gid int  // of the user
	as       bool // take on the user's rights
}

func findStore() (store, error) {
	if uid := os.Getenv("SUDO_UID"); os.Geteuid() == 0 && uid != "" && uid != "0" {
		u, err := user.LookupId(uid)
		if err != nil {
			return store{}, fmt.Errorf("find the settings of the user who called sudo: %w", err)
		}
		id, err := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err, err2); err != nil {
			return store{}, fmt.Errorf("find the settings of the user who called sudo: %w", err)
		}
		return store{path: settingsIn(filepath.Join(u.HomeDir, ".config")), uid: id, gid: gid, as: true}, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return store{}, fmt.Errorf("find settings: %w", err)
	}
	return store{path: settingsIn(dir)}, nil
}

func settingsIn(config string) string { return filepath.Join(config, "ccagent", "ccscreen.json") }

// load reads the settings; a missing file is no error. After an error it returns the
// defaults, which must not be saved over the file.
func (s store) load() (settings, error) {
	var out settings
	var data []byte
	err := s.withRights(func() error {
		f, err := os.Open(s.path)
		if err != nil {
			return err
		}
		defer f.Close()
		data, err = io.ReadAll(io.LimitReader(f, maxSettings+1))
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return out, nil
	case err != nil:
		return out, fmt.Errorf("read settings: %w", err)
	case len(data) > maxSettings:
		return out, fmt.Errorf("read settings: %s has more than %d bytes; remove it", s.path, maxSettings)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return settings{}, fmt.Errorf("read settings: %s is broken (%v); mend or remove it", s.path, err)
	}
	// Values of an older or newer version that this one does not know become the default.
	if !slices.Contains(theme.Names(), out.Theme) {
		out.Theme = ""
	}
	if _, ok := screen.ParseSort(out.Sort); !ok {
		out.Sort = ""
	}
	return out, nil
}

// save replaces the settings as a whole.
func (s store) save(v settings) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	err = s.withRights(func() error {
		dir := filepath.Dir(s.path)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		f, err := os.CreateTemp(dir, ".ccview-*")
		if err != nil {
			return err
		}
		_, err = f.Write(append(data, '\n'))
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), s.path)
		}
		if err != nil {
			os.Remove(f.Name())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("save settings: %w", err)
	}
	return nil
}

// withRights runs f with the user's rights to files.
func (s store) withRights(f func() error) error {
	if !s.as {
		return f()
	}
	return asUser(s.uid, s.gid, f)
}
