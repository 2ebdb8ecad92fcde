package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"ccagent/internal/sandbox"
	"ccagent/push"
)

// transmitRole is the role of the child that speaks HTTP and TLS with an engine: the daemon is root, and parses nothing
// that comes from the network. It receives a transmission, and then requests, each a requestLine and a body, to which it
// answers with an answerLine and a body, until the parent hangs up.
const transmitRole = "transmit"

// transmission is what a child needs for all requests.
type transmission struct {
	PEM push.PEM
	// Env are the variables by which Go's library finds proxies and authorities.
	Env map[string]string
}

// transmitEnv are those variables.
var transmitEnv = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"}

type requestLine struct {
	URL    string
	Header http.Header
}

type answerLine struct {
	Status                  int
	ContentType, RetryAfter string
	Problem                 string // why there is no answer
}

const (
	maxTransmission = 1 << 20
	maxProblem      = 1 << 10
	// transmitMemory bounds the child, which holds one request, and transmitIdle is how long it waits for another: pieces
	// of all processes come together.
	transmitMemory = 256 << 20
	transmitIdle   = 5 * time.Second
)

// transmitChild is what the child does.
func transmitChild(c *sandbox.Conn, _ []*os.File) error {
	_, text, err := c.Receive(maxTransmission)
	if err != nil {
		return err
	}
	var how transmission
	if err := json.Unmarshal(text, &how); err != nil {
		return err
	}
	for name, value := range how.Env {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	config, err := how.PEM.Config()
	if err != nil {
		return err
	}
	transport := push.NewTransport(config)
	for {
		_, text, err := c.Receive(maxTransmission)
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var line requestLine
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		_, body, err := c.Receive(maxBody)
		if err != nil {
			return err
		}
		answer, text := transmit(transport, &line, body)
		head, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if err := errors.Join(c.Send(0, head), c.Send(0, text)); err != nil {
			return err
		}
	}
}

// transmit sends one request, and reads the beginning of its answer.
func transmit(by http.RoundTripper, line *requestLine, body []byte) (a answerLine, text []byte) {
	r, err := http.NewRequest(http.MethodPost, line.URL, bytes.NewReader(body))
	if err != nil {
		return answerLine{Problem: problemOf(err)}, nil
	}
	r.Header = line.Header
	answer, err := by.RoundTrip(r)
	if err != nil {
		return answerLine{Problem: problemOf(err)}, nil
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(answer.Body, push.MaxAnswer)); err != nil {
		return answerLine{Problem: problemOf(fmt.Errorf("read the answer: %w", err))}, nil
	}
	short := func(s string) string { return s[:min(len(s), maxProblem)] }
	return answerLine{Status: answer.StatusCode, ContentType: short(answer.Header.Get("Content-Type")), RetryAfter: short(answer.Header.Get("Retry-After"))}, text
}

func problemOf(err error) string {
	text := err.Error()
	return text[:min(len(text), maxProblem)]
}

// transmitter is a target's http.RoundTripper that has a confined child do it. It is used by one queue.
type transmitter struct {
	how transmission

	mu sync.Mutex // of what follows
	idleChild
}

// newTransmitter reads the files of certificates, which may be for root alone.
func newTransmitter(files push.TLS) (*transmitter, error) {
	pem, err := files.Load()
	if err != nil {
		return nil, err
	}
	t := &transmitter{how: transmission{PEM: pem, Env: map[string]string{}}}
	for _, name := range transmitEnv {
		if value, set := os.LookupEnv(name); set {
			t.how.Env[name] = value
		}
	}
	return t, nil
}

// RoundTrip is http.RoundTripper's.
func (t *transmitter) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(requestLine{r.URL.String(), r.Header})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(); err != nil {
		return nil, err
	}
	t.idle.Stop()
	cancelled := context.AfterFunc(r.Context(), t.child.Kill)
	answer, text, err := t.ask(line, body)
	if !cancelled() {
		_ = t.end() // it was killed
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, errors.Join(err, t.end())
	}
	t.idle.Reset(transmitIdle)
	if answer.Problem != "" {
		return nil, errors.New(answer.Problem)
	}
	header := http.Header{"Content-Type": {answer.ContentType}, "Retry-After": {answer.RetryAfter}}
	return &http.Response{StatusCode: answer.Status, Status: strings.TrimSpace(fmt.Sprintf("%d %s", answer.Status, http.StatusText(answer.Status))),
		Header: header, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r}, nil
}

// ask has the child send a request.
func (t *transmitter) ask(line, body []byte) (a answerLine, text []byte, err error) {
	if err := errors.Join(t.child.Send(0, line), t.child.Send(0, body)); err != nil {
		return a, nil, err
	}
	_, head, err := t.child.Receive(maxHead)
	if err != nil {
		return a, nil, err
	}
	if err := json.Unmarshal(head, &a); err != nil {
		return a, nil, err
	}
	if a.Problem == "" && (a.Status < 100 || a.Status > 999) {
		return a, nil, fmt.Errorf("the status is %d", a.Status)
	}
	a.Problem = a.Problem[:min(len(a.Problem), maxProblem)]
	_, text, err = t.child.Receive(push.MaxAnswer)
	return a, text, err
}

// start starts the child, if there is none.
func (t *transmitter) start() error {
	if t.child != nil {
		return nil
	}
	how, err := json.Marshal(t.how)
	if err != nil {
		return err
	}
	config := sandbox.Config{Role: transmitRole, Name: "ccagent-send", Memory: transmitMemory, Connects: true, Frugal: true}
	if err := t.idleChild.start(&t.mu, config, transmitIdle); err != nil {
		return err
	}
	if err = t.child.Send(0, how); err != nil {
		err = errors.Join(err, t.end())
	}
	return err
}

// stop ends the child once it has nothing to do.
func (t *transmitter) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.end()
}
