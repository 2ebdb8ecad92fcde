package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/config"
	"ccagent/agent/daemon"
	"ccagent/agent/daemon/control"
	"ccagent/internal/sandbox"
	"ccagent/profile"
	"ccagent/push"
)

// convertRole is the role of the child that makes an engine's requests of logs. To each conversion that it
// receives, with its logs, it answers with a requestHead and the body, until the parent hangs up.
const convertRole = "convert"

type conversion struct {
	Engine    string
	Arguments bool
	Logs      int
}

type requestHead struct {
	Path, ContentType string
	Logs              int    // of so many, the first, at least one
	Nothing           bool   // there is nothing to send of them
	Problem           string // why there is no request of the first log
}

const (
	maxConversion = 1 << 12
	maxHead       = 1 << 16
	// maxBody bounds a request before it is compressed, in bytes.
	maxBody = 64 << 20
	// maxTogether bounds the logs that one request is made of, and togetherBytes their size. One may be larger by itself.
	maxTogether   = 64
	togetherBytes = 8 << 20
	// convertMemory bounds the child, and convertTime how long it may take for a request.
	convertMemory  = 512 << 20
	convertTime    = time.Minute
	convertBallast = 16 << 20
	// convertIdle is how long a child waits for another log.
	convertIdle = time.Second
)

// convertMain runs such a child, or one that sends, and then does not return.
func convertMain() {
	sandbox.Main(map[string]sandbox.Role{transmitRole: transmitChild, convertRole: func(c *sandbox.Conn, _ []*os.File) error {
		// It is never touched, so it takes no memory. But Go's garbage collector counts it, and lets the heap of the child,
		// which lives for some seconds, grow by as much before it runs.
		ballast := make([]byte, convertBallast)
		defer runtime.KeepAlive(ballast)
		for {
			_, text, err := c.Receive(maxConversion)
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			var what conversion
			if err := json.Unmarshal(text, &what); err != nil {
				return err
			}
			logs, err := c.ReceiveFiles(what.Logs)
			if err != nil {
				return err
			}
			r, n, err := convert(logs, what)
			for _, log := range logs {
				log.Close()
			}
			head := requestHead{Logs: n, Nothing: r == nil}
			if err != nil {
				head.Problem = err.Error()
				head.Problem = head.Problem[:min(len(head.Problem), maxHead/8)]
			}
			if r == nil {
				r = &push.Request{}
			}
			head.Path, head.ContentType = r.Path, r.ContentType
			if text, err = json.Marshal(head); err != nil {
				return err
			}
			if err := errors.Join(c.Send(0, text), c.Send(0, r.Body)); err != nil {
				return err
			}
		}
	}})
}

// convert makes the request of the first n of some logs, those up to one that cannot be read; nil if they have no samples. An error
// is why there is none of the first.
func convert(logs []*os.File, what conversion) (r *push.Request, n int, err error) {
	e, err := push.ByName(what.Engine)
	if err != nil {
		return nil, 1, err
	}
	var of []*push.Batch
	for i, log := range logs {
		b, err := batchOf(log, what)
		if err != nil && i == 0 {
			return nil, 1, err
		}
		if err != nil {
			break
		}
		if n++; len(b.Profiles) > 0 {
			of = append(of, b)
		}
	}
	if len(of) == 0 {
		return nil, n, nil
	}
	r, err = e.Request(of)
	return r, n, err
}

func batchOf(log *os.File, what conversion) (*push.Batch, error) {
	st, err := log.Stat()
	if err != nil {
		return nil, err
	}
	p, err := profile.LoadSamples(io.NewSectionReader(log, 0, st.Size()))
	if err != nil {
		return nil, err
	}
	return push.Of(p, profile.Range{}, push.Rules{Arguments: what.Arguments})
}

// converter has children without privileges make requests of logs, which hold what possibly hostile programs
// say. One child makes those of one user's programs, as long as they follow each other. It is used by one
// goroutine.
type converter struct {
	what conversion

	mu   sync.Mutex // of what follows
	user uint32
	idleChild
}

// request makes the request of the first n of some logs: as many as are of one user's programs, at most maxTogether; nil if they have no
// samples. An error is why there is none of the first.
func (v *converter) request(ctx context.Context, paths []string) (r *push.Request, n int, err error) {
	logs, user, known, err := openLogs(paths)
	defer func() {
		for _, log := range logs {
			log.Close()
		}
	}()
	if err != nil {
		return nil, 1, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for {
		r, n, err = v.convert(ctx, logs, user, known)
		if err == nil || len(logs) == 1 || ctx.Err() != nil {
			break
		}
		// It need not be the first one's fault.
		for _, log := range logs[1:] {
			log.Close()
		}
		logs = logs[:1]
	}
	if err != nil {
		return nil, 1, fmt.Errorf("convert %s: %w", paths[0], err)
	}
	return r, n, nil
}

// openLogs opens the first of some logs, as many as may be converted together, of programs of one user. The error is the first one's.
func openLogs(paths []string) (logs []*os.File, user uint32, known bool, err error) {
	var bytes int64
	for _, path := range paths[:min(len(paths), maxTogether)] {
		log, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			if len(logs) == 0 {
				return nil, 0, false, err
			}
			break
		}
		of, ok := daemon.OwnerOf(log)
		st, err := log.Stat()
		if err == nil {
			bytes += st.Size()
		}
		if len(logs) > 0 && (err != nil || !ok || !known || of != user || bytes > togetherBytes) {
			log.Close()
			break
		}
		logs, user, known = append(logs, log), of, ok
	}
	return logs, user, known, nil
}

// convert has a child make a request. The caller holds the lock.
func (v *converter) convert(ctx context.Context, logs []*os.File, user uint32, known bool) (*push.Request, int, error) {
	if v.child != nil && (v.user != user || !known) {
		v.end()
	}
	if v.child == nil {
		if err := v.start(&v.mu, sandbox.Config{Role: convertRole, Name: "ccagent-convert", Memory: convertMemory, Frugal: true}, convertIdle); err != nil {
			return nil, 0, err
		}
		v.user = user
	}
	v.idle.Stop()
	// What the child has not answered by then it never does.
	late := time.AfterFunc(convertTime, v.child.Kill)
	cancelled := context.AfterFunc(ctx, v.child.Kill)
	r, n, err := v.ask(logs)
	if !late.Stop() || !cancelled() || err != nil || !known {
		err = errors.Join(err, v.end())
	} else {
		v.idle.Reset(convertIdle)
	}
	return r, n, err
}

// endChild ends a child that has nothing to do, and returns what it says of why it has failed.
func endChild(child *sandbox.Child) error {
	child.Close() // it ends by itself, if it can
	patience := time.AfterFunc(convertIdle, child.Kill)
	err := child.Wait()
	patience.Stop()
	if err == nil {
		return nil
	}
	if words := strings.TrimSpace(string(child.Stderr())); words != "" {
		err = errors.Join(errors.New(words), err)
	}
	return err
}

// stop ends the child once it has nothing to do.
func (v *converter) stop() {
	v.mu.Lock()
	defer v.mu.Unlock()
	_ = v.end()
}

// ask has the child make a request, of the first n logs.
func (v *converter) ask(logs []*os.File) (r *push.Request, n int, err error) {
	what := v.what
	what.Logs = len(logs)
	text, err := json.Marshal(what)
	if err != nil {
		return nil, 0, err
	}
	if err := errors.Join(v.child.Send(0, text), v.child.SendFiles(logs...)); err != nil {
		return nil, 0, err
	}
	if _, text, err = v.child.Receive(maxHead); err != nil {
		return nil, 0, err
	}
	var head requestHead
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, 0, err
	}
	_, body, err := v.child.Receive(maxBody)
	switch {
	case err != nil:
		return nil, 0, err
	case head.Problem != "":
		return nil, 0, errors.New(head.Problem)
	case head.Logs < 1 || head.Logs > len(logs):
		return nil, 0, fmt.Errorf("the request is of %d logs", head.Logs)
	case head.Nothing:
		return nil, head.Logs, nil
	}
	// What the child says is not trusted: it may not choose another place of the engine.
	e, err := push.ByName(v.what.Engine)
	if err == nil && head.Path != e.Path {
		err = fmt.Errorf("the request is for %q", head.Path)
	}
	return &push.Request{Path: head.Path, ContentType: head.ContentType, Body: body}, head.Logs, err
}

// sender sends closed pieces to engines, each by a queue of its own.
type sender struct {
	names      []string
	queues     []*push.Queue
	converters []*converter // each a queue's
	by         []*transmitter
	cancel     context.CancelFunc
	running    sync.WaitGroup
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
		transmitter, err := newTransmitter(t.TLS)
		if err != nil {
			return nil, fmt.Errorf("daemon.push[%d]: %w", i, err)
		}
		t.Transport = transmitter
		by := &converter{what: conversion{Engine: e.Name, Arguments: to.Arguments}}
		q, err := push.NewQueue(t, push.Options{
			Spill:    filepath.Join(stateDir, fmt.Sprintf("push-%d-%s.json", i, e.Name)),
			Report:   func(text string) { say("%s", text) },
			Together: maxTogether,
			Request: func(ctx context.Context, paths []string, _ push.Engine) (*push.Request, int, error) {
				return by.request(ctx, paths)
			},
		})
		if err != nil {
			return nil, err
		}
		s.names, s.queues, s.converters = append(s.names, fmt.Sprintf("%s-%d", e.Name, i)), append(s.queues, q), append(s.converters, by)
		s.by = append(s.by, transmitter)
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

// add queues pieces that were closed together.
func (s *sender) add(paths ...string) {
	for _, q := range s.queues {
		q.Add(paths...)
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
	for i, v := range s.converters {
		v.stop()
		s.by[i].stop()
	}
}
