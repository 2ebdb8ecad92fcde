// Package config reads ccagent's configuration file, which only root may write, because it
// grants rights to users.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"
)

// Path is where the file is.
const Path = "/etc/ccagent/ccagent.yaml"

// Config is what the file holds.
type Config struct {
	// Allow names, for users who may run ccagent by sudo, the users that they may act as
	// besides themselves.
	Allow map[string][]string `yaml:"allow"`
	// Daemon is for ccagent daemon. What it leaves out is as in Default.
	Daemon Daemon `yaml:"daemon"`

	text []byte
}

// Wrong is an error of a key of Daemon, such as events[0], with its line.
func (c *Config) Wrong(key string, err error) error {
	return (&mistake{"$.daemon." + key, err.Error()}).explain(c.text)
}

// Error is a mistake in a configuration, with its line.
type Error struct {
	Line    int // from 1
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// maxSize bounds the file, in bytes.
const maxSize = 1 << 20

// Load reads the file at path. A missing file is an empty one. One that another user than
// root may have written is refused.
func Load(path string) (*Config, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &Config{Daemon: Default()}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	if err := rootsOwn(f, path); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// rootsOwn refuses a file that another user than root may have written. That includes a file in
// a folder where another user may write, since they could replace it by another of root's files.
func rootsOwn(f *os.File, path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	defer dir.Close()
	for _, f := range []*os.File{f, dir} {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return fmt.Errorf("read configuration: %w", err)
		}
		if st.Uid != 0 || st.Mode&0o022 != 0 {
			return fmt.Errorf("read configuration: %s is not root's alone: chown root %[1]s && chmod go-w %[1]s", f.Name())
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("read configuration: %s is no regular file", path)
	}
	return nil
}

// Parse reads a configuration. A key that it does not know is an error.
func Parse(text []byte) (*Config, error) {
	if len(text) > maxSize {
		return nil, fmt.Errorf("more than %d bytes", maxSize)
	}
	c := Config{Daemon: Default()}
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	if err := d.Decode(&c); errors.Is(err, io.EOF) {
		c = Config{Daemon: Default()}
	} else if err != nil {
		return nil, explain(err)
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	if wrong := c.Daemon.check(); wrong != nil {
		return nil, wrong.explain(text)
	}
	c.text = text
	return &c, nil
}

func explain(err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil && e.GetToken().Position != nil {
		return &Error{e.GetToken().Position.Line, e.GetMessage()}
	}
	return err
}
