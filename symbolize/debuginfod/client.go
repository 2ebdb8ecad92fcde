package debuginfod

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ccagent/internal/credentials"
	"ccagent/internal/sandbox"
	"ccagent/symbolize/binary"

	"golang.org/x/sys/unix"
)

// Bounds of what is fetched.
const (
	maxFile  = 2 << 30 // bytes
	maxCache = 4 << 30 // bytes of all files that are kept
	maxTime  = time.Minute
	maxAsked = 4096
	// retryAfter is for how long a server is not asked again that did not answer, nor for a file that
	// it does not have.
	retryAfter = 10 * time.Minute
)

// Client fetches debug files. It is used by one goroutine. A nil one fetches none.
type Client struct {
	Servers []string                // as Parse gives them
	Cache   string                  // folder where files are kept; empty for none
	Owner   credentials.Credentials // whose folder it is

	limit    uint64               // bytes of a file; maxFile if 0
	lacking  map[string]time.Time // build-ids that no server has, until then
	down     time.Time            // until then no server is asked
	problems []string
}

// New returns a client of servers, nil if there are none.
func New(servers []string, cache string, owner credentials.Credentials) *Client {
	if len(servers) == 0 {
		return nil
	}
	return &Client{Servers: servers, Cache: cache, Owner: owner}
}

// Parse checks addresses of servers. Each text may have several, separated by spaces or commas, as
// DEBUGINFOD_URLS has them.
func Parse(texts []string) (servers []string, err error) {
	for _, text := range texts {
		for _, s := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
			u, err := url.Parse(s)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
				return nil, fmt.Errorf("%q is no address of a debuginfod server, such as https://debuginfod.debian.net", s)
			}
			servers = append(servers, strings.TrimSuffix(s, "/"))
		}
	}
	return servers, nil
}

// Problems are the reasons why files were not fetched, since the last call.
func (c *Client) Problems() (problems []string) {
	if c != nil {
		problems, c.problems = c.problems, nil
	}
	return problems
}

// File gives a binary's separate debug file, of the cache or of a server; nil if there is none.
func (c *Client) File(ctx context.Context, b *binary.Info) *os.File {
	if c == nil || len(b.BuildID) < 8 || len(b.BuildID) > 64 {
		return nil
	}
	id := hex.EncodeToString(b.BuildID)
	if f := c.kept(id, b); f != nil {
		return f
	}
	now := time.Now()
	if now.Before(c.down) || now.Before(c.lacking[id]) {
		return nil
	}
	f, err := c.fetch(ctx, id, b)
	switch {
	case err == nil:
		return f
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, errLacking) && len(c.lacking) < maxAsked:
		if c.lacking == nil {
			c.lacking = map[string]time.Time{}
		}
		c.lacking[id] = now.Add(retryAfter)
	default:
		c.down = now.Add(retryAfter)
		c.lacking = nil
	}
	c.problems = append(c.problems, fmt.Sprintf("debuginfod: build-id %s: %v", id, err))
	return nil
}

func (c *Client) path(id string) string { return filepath.Join(c.Cache, id+".debug") }

// kept opens a file of the cache. Its owner may have changed it, so its build-id is looked at again.
func (c *Client) kept(id string, b *binary.Info) (found *os.File) {
	if c.Cache == "" {
		return nil
	}
	_ = c.Owner.Run(func() error {
		f, err := os.OpenFile(c.path(id), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		if st, err := f.Stat(); err == nil && st.Mode().IsRegular() && b.IsDebugFile(f, st.Size()) {
			found = f
			now := time.Now()
			return os.Chtimes(c.path(id), now, now) // see trim
		}
		return f.Close()
	})
	return found
}

// errLacking is of files that no server has.
var errLacking = errors.New("no server has its debug file")

func (c *Client) fetch(ctx context.Context, id string, b *binary.Info) (_ *os.File, err error) {
	file, temporary, err := c.create(id)
	if err != nil {
		return nil, fmt.Errorf("make a file for what is fetched: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
		if temporary != "" {
			_ = c.Owner.Run(func() error { return os.Remove(temporary) })
		}
	}()
	limit := c.limit
	if limit == 0 {
		limit = maxFile
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	if err := ask(ctx, request{Servers: c.Servers, ID: id, Limit: limit}, file); err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if uint64(st.Size()) > limit || !b.IsDebugFile(file, st.Size()) {
		return nil, errors.New("what the server sent is not of this build; it is not used")
	}
	if temporary != "" {
		if err := c.Owner.Run(func() error { return os.Rename(temporary, c.path(id)) }); err == nil {
			temporary = ""
			_ = c.Owner.Run(c.trim)
		}
	}
	return file, nil
}

// create makes the file that is fetched into, in the cache or, without one, a file without a name.
func (c *Client) create(id string) (f *os.File, temporary string, err error) {
	if c.Cache != "" {
		err = c.Owner.Run(func() (err error) {
			if err := os.MkdirAll(c.Cache, 0o700); err != nil {
				return err
			}
			f, err = os.CreateTemp(c.Cache, id+".*.part")
			return err
		})
		if err == nil {
			return f, f.Name(), nil
		}
	}
	if f, err = os.CreateTemp("", "ccagent-debuginfod-"); err != nil {
		return nil, "", err
	}
	return f, "", os.Remove(f.Name())
}

// trim removes the files that were not used for longest while all together are too large, and what
// killed processes have left.
func (c *Client) trim() error {
	entries, err := os.ReadDir(c.Cache)
	if err != nil {
		return err
	}
	var total int64
	type kept struct {
		path string
		size int64
		used time.Time
	}
	var files []kept
	for _, e := range entries {
		st, err := e.Info()
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		path := filepath.Join(c.Cache, e.Name())
		if strings.HasSuffix(path, ".part") && time.Since(st.ModTime()) > time.Hour {
			_ = os.Remove(path)
		} else if strings.HasSuffix(path, ".debug") {
			files, total = append(files, kept{path, st.Size(), st.ModTime()}), total+st.Size()
		}
	}
	for total > maxCache && len(files) > 1 {
		oldest := 0
		for i := range files {
			if files[i].used.Before(files[oldest].used) {
				oldest = i
			}
		}
		if err := os.Remove(files[oldest].path); err != nil {
			return err
		}
		total -= files[oldest].size
		files[oldest] = files[len(files)-1]
		files = files[:len(files)-1]
	}
	return nil
}

// ask has a child fetch a file.
func ask(ctx context.Context, r request, into *os.File) error {
	child, err := sandbox.Start(ctx, sandbox.Config{Role: role, Name: "ccagent: debuginfod", Memory: childMemory, FileSize: r.Limit + 1, Connects: true}, into)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, child.Kill)
	defer stop()
	text, err := json.Marshal(r)
	if err == nil {
		err = child.Send(0, text)
	}
	var reply []byte
	if err == nil {
		_, reply, err = child.Receive(maxMessage)
	}
	child.Kill()
	_ = child.Wait()
	var a answer
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("not fetched within %v", maxTime)
	case err != nil:
		return fmt.Errorf("the process that fetches ended: %w", err)
	case json.Unmarshal(reply, &a) != nil:
		return errors.New("the process that fetches did not answer")
	case a.Lacking:
		return errLacking
	case a.Problem != "":
		return errors.New(a.Problem)
	}
	return nil
}
