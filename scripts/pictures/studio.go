package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// studio plays tapes.
type studio struct {
	root, dir, program string
	gallery            string // where SVG files go
	check              bool
	other              bool // the program is not this tree's, which documents are of
	takes              int
}

// patience is how long a screen may take to show what is awaited; only a failure reaches it.
const patience = 2 * time.Minute

// still is for how long a screen must not change before it is taken for what there is to see.
const still = 700 * time.Millisecond

func (s *studio) play(t tape) error {
	if !s.other {
		if err := s.take(t, 0, 0, "dark"); err != nil {
			return err
		}
	}
	if s.check {
		return nil
	}
	for _, x := range t {
		if x.word != "gallery" {
			continue
		}
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			for _, theme := range []string{"dark", "light"} {
				if err := s.take(t, size[0], size[1], theme); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// take plays a tape once: in its own size it takes the pictures of documents, in a given one those
// of the gallery.
func (s *studio) take(t tape, w, h int, theme string) error {
	gallery := w != 0
	s.takes++
	x := &terminal{socket: filepath.Join(s.dir, strconv.Itoa(s.takes))}
	defer x.close()
	var logs []string
	for _, st := range t {
		var err error
		switch st.word {
		case "log":
			for _, log := range st.args {
				if !strings.Contains(log, "/") {
					log = filepath.Join("docs/viewer/logs", log)
				}
				logs = append(logs, filepath.Join(s.root, log))
			}
		case "program":
			var give func()
			if give, err = s.lend(st.args[0], st.args[1]); err == nil {
				defer give()
			}
		case "size":
			if !gallery {
				w, err = strconv.Atoi(st.args[0])
				if err == nil {
					h, err = strconv.Atoi(st.args[1])
				}
			}
			if err == nil {
				err = x.open(s, w, h, theme, logs)
			}
		case "keys":
			for _, k := range st.args {
				if _, err = x.tmux("send-keys", k); err != nil {
					break
				}
			}
		case "await":
			if gallery { // in its size what is awaited may not fit
				_, err = x.settled()
			} else {
				_, err = x.await(func(screen string) bool { return strings.Contains(screen, st.rest) })
			}
		case "picture":
			if !gallery {
				err = s.picture(x, st.args[0], st.args[1])
			}
		case "svg":
			if !gallery {
				err = s.drawing(x, filepath.Join(s.gallery, st.args[0]+".svg"), w, h)
			}
		case "gallery":
			if gallery {
				var screen string
				if screen, err = x.settled("-e"); err == nil {
					name := fmt.Sprintf("%s-%dx%d-%s.svg", st.args[0], w, h, theme)
					err = os.WriteFile(filepath.Join(s.gallery, name), render(screen, w, h, theme), 0o644)
				}
			}
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", st.line, err)
		}
	}
	return nil
}

// picture writes the screen into a document, or compares.
func (s *studio) picture(x *terminal, doc, name string) error {
	path := filepath.Join(s.root, doc)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	from, to, err := block(string(text), name)
	if err != nil {
		return fmt.Errorf("%s: %w", doc, err)
	}
	if s.check {
		want := string(text[from:to])
		if last, err := x.await(func(screen string) bool { return trimmed(screen) == want }); err != nil {
			return fmt.Errorf("%s: picture %s is not what the viewer shows now: scripts/pictures draws it anew\n%s", doc, name, trimmed(last))
		}
		return nil
	}
	screen, err := x.settled()
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(string(text[:from])+trimmed(screen)+string(text[to:])), 0o644)
}

// drawing writes the screen into an SVG file, or compares.
func (s *studio) drawing(x *terminal, path string, w, h int) error {
	if !s.check {
		screen, err := x.settled("-e")
		if err != nil {
			return err
		}
		return os.WriteFile(path, render(screen, w, h, "dark"), 0o644)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	last, err := x.await(func(screen string) bool { return bytes.Equal(render(screen, w, h, "dark"), want) }, "-e")
	if err != nil {
		return fmt.Errorf("%s is not what the viewer shows now: scripts/pictures draws it anew\n%s", path, last)
	}
	return nil
}

// block finds where the picture of a name is in a document.
func block(text, name string) (from, to int, err error) {
	mark := "<!-- picture: " + name + " -->\n```\n"
	at := strings.Index(text, mark)
	if at < 0 {
		return 0, 0, fmt.Errorf("there is no picture %s", name)
	}
	from = at + len(mark)
	end := strings.Index(text[from:], "```\n")
	if end < 0 {
		return 0, 0, fmt.Errorf("picture %s has no end", name)
	}
	return from, from + end, nil
}

// trimmed is a screen without spaces at the ends of its lines.
func trimmed(screen string) string {
	var b strings.Builder
	for line := range strings.Lines(screen) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// terminal is a tmux server with one window, in which ccview runs.
type terminal struct{ socket string }

func (x *terminal) open(s *studio, w, h int, theme string, logs []string) error {
	config := filepath.Join(s.dir, "config")
	if err := os.MkdirAll(filepath.Join(config, "ccagent"), 0o700); err != nil {
		return err
	}
	// What is said on a first run is in no picture.
	if err := os.WriteFile(filepath.Join(config, "ccagent", "ccscreen.json"), []byte(`{"seen":true}`), 0o600); err != nil {
		return err
	}
	args := append([]string{
		"-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(w), "-y", strconv.Itoa(h),
		"env", "-u", "SUDO_UID", "-u", "NO_COLOR", "XDG_CONFIG_HOME=" + config, "LC_ALL=C.UTF-8", "COLORTERM=truecolor", "TERM=xterm-256color", s.program,
	}, asked(theme, logs)...)
	_, err := x.tmux(args...)
	if err != nil {
		return err
	}
	if _, err := x.await(func(screen string) bool { return strings.Contains(screen, "q quit") }); err != nil {
		return err
	}
	if !s.check {
		_, err = x.settled()
	}
	return err
}

// asked is what the viewer is called with.
func asked(theme string, logs []string) []string {
	args := append([]string{"--theme", theme}, logs...)
	if len(logs) == 2 {
		return append([]string{"diff"}, args...)
	}
	return args
}

func (x *terminal) close() { _, _ = x.tmux("kill-server") } // it may not have been started

func (x *terminal) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w: %s", args[0], err, stderr.String())
	}
	return string(out), nil
}

func (x *terminal) screen(flags ...string) (string, error) {
	return x.tmux(append([]string{"capture-pane", "-p"}, flags...)...)
}

// await returns the screen once it is as wanted; the flags are for tmux's capture of it.
func (x *terminal) await(ok func(screen string) bool, flags ...string) (string, error) {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // between polls
		screen, err := x.screen(flags...)
		if err != nil || ok(screen) {
			return screen, err
		}
		if time.Now().After(deadline) {
			return screen, errors.New("the terminal never showed what is awaited:\n" + screen)
		}
	}
}

// settled returns the screen once it does not change any more.
func (x *terminal) settled(flags ...string) (string, error) {
	last, since := "", time.Now()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		screen, err := x.screen(flags...)
		if err != nil {
			return "", err
		}
		if screen != last {
			last, since = screen, time.Now()
		} else if time.Since(since) >= still {
			return screen, nil
		}
	}
	return "", errors.New("the screen never came to rest")
}
