package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/config"
	"ccagent/agent/daemon/control"
	"ccagent/internal/sandbox"
	"ccagent/profile"
	"ccagent/push"
)

// convertRole is the role of the child that makes an engine's request of a log, its first file. Its first
// message is a conversion; it answers with a requestHead and the body.
const convertRole = "convert"

type conversion struct {
	Engine    string
	Arguments bool
}

type requestHead struct {
	Path, ContentType string
	Nothing           bool // there is nothing to send
}

const (
	maxHead = 1 << 12
	// maxBody bounds a request before it is compressed, in bytes.
	maxBody = 64 << 20
	// convertMemory and convertTime bound the child.
	convertMemory = 512 << 20
	convertTime   = time.Minute
)

// convertMain runs such a child, and then does not return.
func convertMain() {
	sandbox.Main(map[string]sandbox.Role{convertRole: func(c *sandbox.Conn, files []*os.File) error {
		_, text, err := c.Receive(maxHead)
		if err != nil {
			return err
		}
		var what conversion
		if err := json.Unmarshal(text, &what); err != nil {
			return err
		}
		r, err := convert(files[0], what)
		if err != nil {
			return err
		}
		head := requestHead{Nothing: r == nil}
		if r == nil {
			r = &push.Request{}
		}
		head.Path, head.ContentType = r.Path, r.ContentType
		if text, err = json.Marshal(head); err != nil {
			return err
		}
		return errors.Join(c.Send(0, text), c.Send(0, r.Body))
	}})
}

// convert makes the request of a log, nil if it has no samples.
func convert(log *os.File, what conversion) (*push.Request, error) {
	e, err := push.ByName(what.Engine)
	if err != nil {
		return nil, err
	}
	st, err := log.Stat()
	if err != nil {
		return nil, err
	}
	p, err := profile.Load(io.NewSectionReader(log, 0, st.Size()))
	if err != nil {
		return nil, err
	}
	b, err := push.Of(p, profile.Range{}, push.Rules{Arguments: what.Arguments})
	if err != nil || len(b.Profiles) == 0 {
		return nil, err
	}
	return e.Request(b)
}

// requestOf has a child without privileges make the request of a log, which holds what a possibly
// hostile program says.
func requestOf(ctx context.Context, path string, what conversion) (*push.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, convertTime)
	defer cancel()
	log, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	c, err := sandbox.Start(ctx, sandbox.Config{Role: convertRole, Name: "ccagent-convert", Memory: convertMemory}, log)
	if err != nil {
		return nil, err
	}
	r, err := func() (*push.Request, error) {
		if err := c.Send(0, text); err != nil {
			return nil, err
		}
		_, text, err := c.Receive(maxHead)
		if err != nil {
			return nil, err
		}
		var head requestHead
		if err := json.Unmarshal(text, &head); err != nil {
			return nil, err
		}
		_, body, err := c.Receive(maxBody)
		if err != nil || head.Nothing {
			return nil, err
		}
		// What the child says is not trusted: it may not choose another place of the engine.
		e, err := push.ByName(what.Engine)
		if err == nil && head.Path != e.Path {
			err = fmt.Errorf("the request is for %q", head.Path)
		}
		return &push.Request{Path: head.Path, ContentType: head.ContentType, Body: body}, err
	}()
	if err != nil {
		c.Kill()
	}
	if wait := c.Wait(); err != nil || wait != nil {
		if words := strings.TrimSpace(string(c.Stderr())); words != "" {
			err = errors.New(words)
		}
		return nil, fmt.Errorf("convert %s: %w", path, errors.Join(err, wait))
	}
	return r, nil
}

// sender sends closed pieces to engines, each by a queue of its own.
type sender struct {
	names   []string
	queues  []*push.Queue
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// newSender makes the queues that the configuration asks for, with what an earlier daemon has not sent.
func newSender(c *config.Daemon, stateDir string) (*sender, error) {
	s := &sender{}
	for i, to := range c.Push {
		e, err := push.ByName(to.Engine)
		if err != nil {
			return nil, err
		}
		t := &push.Target{Engine: e, URL: to.URL, Headers: to.Headers, TLS: push.TLS{CA: to.CA, Certificate: to.Cert, Key: to.Key}}
		if e.Name == push.OTLP.Name {
			if err := t.FromEnv(os.Getenv); err != nil {
				return nil, err
			}
		}
		if t.URL == "" {
			return nil, fmt.Errorf("daemon.push[%d].url: the engine's address is missing", i)
		}
		q, err := push.NewQueue(t, push.Options{
			Spill:  filepath.Join(stateDir, fmt.Sprintf("push-%d-%s.json", i, e.Name)),
			Report: func(text string) { say("%s", text) },
			Request: func(ctx context.Context, path string, e push.Engine) (*push.Request, error) {
				return requestOf(ctx, path, conversion{e.Name, to.Arguments})
			},
		})
		if err != nil {
			return nil, err
		}
		s.names, s.queues = append(s.names, fmt.Sprintf("%s-%d", e.Name, i)), append(s.queues, q)
	}
	return s, nil
}

// start begins to send.
func (s *sender) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	for _, q := range s.queues {
		s.running.Go(func() { q.Run(ctx) })
	}
}

// add queues a closed piece.
func (s *sender) add(path string) {
	for _, q := range s.queues {
		q.Add(path)
	}
}

// engines says how sending goes.
func (s *sender) engines() (all []control.Engine) {
	for i, q := range s.queues {
		st := q.Stats()
		e := control.Engine{Name: s.names[i], Sent: st.Sent, Bytes: st.Bytes, Rejected: st.Rejected, Waiting: st.Waiting, Failing: st.Failing, Dropped: map[string]uint64{}}
		for reason, n := range st.Dropped {
			e.Dropped[string(reason)] = n
		}
		all = append(all, e)
	}
	return all
}

// stop ends sending. What waits is sent by the next daemon.
func (s *sender) stop() {
	if s.cancel != nil {
		s.cancel()
	}
	s.running.Wait()
}
