package debuginfod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"ccagent/internal/sandbox"
)

const (
	role        = "debuginfod"
	childMemory = 256 << 20
	maxMessage  = 1 << 16
	// maxRedirects is how often a server may send the request elsewhere.
	maxRedirects = 5
)

// request is what the child is to fetch, and answer why it has not.
type request struct {
	Servers []string
	ID      string // build-id, in hexadecimal
	Limit   uint64 // bytes
}

type answer struct {
	Lacking bool // no server has it
	Problem string
}

// Main runs a child that fetches, and then does not return.
func Main() {
	sandbox.Main(map[string]sandbox.Role{role: func(c *sandbox.Conn, files []*os.File) error {
		_, text, err := c.Receive(maxMessage)
		if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(text, &r); err != nil || len(files) != 1 {
			return fmt.Errorf("read the request: %w", err)
		}
		var a answer
		err = fetchFirst(&r, files[0])
		if a.Lacking = errors.Is(err, errLacking); err != nil && !a.Lacking {
			a.Problem = err.Error()
			a.Problem = a.Problem[:min(len(a.Problem), maxMessage/8)]
		}
		if text, err = json.Marshal(a); err != nil {
			return err
		}
		return c.Send(0, text)
	}})
}

// fetchFirst writes into a file what the first server that has it sends. What servers say that fail is
// reported only if none has the file.
func fetchFirst(r *request, into *os.File) error {
	client := http.Client{
		Timeout: maxTime,
		Transport: &http.Transport{
			// The C library's resolver may load libraries, for which there is no memory.
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, Resolver: &net.Resolver{PreferGo: true}}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ResponseHeaderTimeout:  30 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("redirected too often")
			}
			if via[0].URL.Scheme == "https" && next.URL.Scheme != "https" {
				return errors.New("redirected from https to " + next.URL.Scheme)
			}
			return nil
		},
	}
	failed := errLacking
	for _, server := range r.Servers {
		err := fetch(&client, server, r, into)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errLacking) {
			failed = fmt.Errorf("%s: %w", server, err)
		}
	}
	return failed
}

func fetch(client *http.Client, server string, r *request, into *os.File) error {
	q, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server+"/buildid/"+r.ID+"/debuginfo", nil)
	if err != nil {
		return err
	}
	q.Header.Set("User-Agent", "ccagent")
	reply, err := client.Do(q)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	switch {
	case reply.StatusCode == http.StatusNotFound:
		return errLacking
	case reply.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", reply.StatusCode)
	case reply.ContentLength > int64(r.Limit):
		return fmt.Errorf("the file has %d bytes, more than %d", reply.ContentLength, r.Limit)
	}
	if err := errors.Join(into.Truncate(0), seekStart(into)); err != nil {
		return err
	}
	n, err := io.Copy(into, io.LimitReader(reply.Body, int64(r.Limit)+1))
	switch {
	case err != nil:
		return err
	case uint64(n) > r.Limit:
		return fmt.Errorf("the file has more than %d bytes", r.Limit)
	}
	return nil
}

func seekStart(f *os.File) error {
	_, err := f.Seek(0, io.SeekStart)
	return err
}
