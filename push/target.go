package push

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Target is an engine at an address.
type Target struct {
	Engine Engine
	URL    string
	// Exact is set if URL is the whole address of requests, and not what their path is below.
	Exact   bool
	Headers map[string]string
	Timeout time.Duration // of one request; 0 means DefaultTimeout
	Plain   bool          // do not compress
	TLS     TLS
	// Transport sends requests; nil means one that is made of the fields above.
	Transport http.RoundTripper
}

// TLS has the files of certificates in PEM. Empty ones mean the system's, and none of the client's own.
type TLS struct {
	CA, Certificate, Key string
}

// DefaultTimeout is that of OpenTelemetry's exporters.
const DefaultTimeout = 10 * time.Second

// MaxAnswer bounds what is read of an answer, in bytes.
const MaxAnswer = 64 << 10

// client is a target that is ready.
type client struct {
	*Target
	http *http.Client
	base string
}

func (t *Target) client() (*client, error) {
	u, err := url.Parse(t.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s: %q is no address like http://host:port", t.Engine.Name, t.URL)
	}
	c := &client{Target: t, base: t.URL}
	timeout := t.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	c.http = &http.Client{Timeout: timeout, Transport: t.Transport,
		// A redirect would turn the request into a GET without its body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if t.Transport == nil {
		config, err := t.TLS.config()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Engine.Name, err)
		}
		c.http.Transport = NewTransport(config)
	}
	return c, nil
}

func (t TLS) config() (*tls.Config, error) {
	p, err := t.Load()
	if err != nil {
		return nil, err
	}
	return p.Config()
}

// PEM is what the files of a TLS hold; empty where there is none.
type PEM struct{ CA, Certificate, Key []byte }

// Load reads the files, whose contents Config checks.
func (t TLS) Load() (p PEM, err error) {
	if (t.Certificate == "") != (t.Key == "") {
		return p, errors.New("a client's certificate and its key are given together")
	}
	for _, f := range []struct {
		path, what string
		into       *[]byte
	}{{t.CA, "the authority's certificate", &p.CA}, {t.Certificate, "the client's certificate", &p.Certificate}, {t.Key, "the client's key", &p.Key}} {
		if f.path == "" {
			continue
		}
		if *f.into, err = os.ReadFile(f.path); err != nil {
			return p, fmt.Errorf("read %s: %w", f.what, err)
		}
	}
	if _, err := p.Config(); err != nil {
		return p, fmt.Errorf("%s: %w", cmp.Or(t.CA, t.Certificate), err)
	}
	return p, nil
}

// Config makes what TLS takes of it.
func (p PEM) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.CA != nil {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(p.CA) {
			return nil, errors.New("there is no authority's certificate in PEM")
		}
	}
	if p.Certificate != nil {
		pair, err := tls.X509KeyPair(p.Certificate, p.Key)
		if err != nil {
			return nil, fmt.Errorf("read the client's certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// NewTransport makes what sends a target's requests.
func NewTransport(c *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = c
	return t
}

// RefusedError is an answer that will not change if the request is repeated.
type RefusedError struct {
	Status string
	Text   string // the beginning of the answer's
}

func (e *RefusedError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("refused: %s: %s", e.Status, e.Text), ": ")
}

// later is an answer that asks for another attempt.
type later struct {
	err   error
	after time.Duration // as the engine asks; 0 if it does not
}

func (e *later) Error() string { return e.err.Error() }
func (e *later) Unwrap() error { return e.err }

// compressors keep what a gzip.Writer has, some MB: most requests have a few dozen KB. To compress more takes more CPU time than
// the bytes are worth.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // there is such a level
	}
	return w
}}

func compress(body []byte) []byte {
	var z bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&z)
	w.Write(body) // a buffer takes everything
	w.Close()
	return z.Bytes()
}

// send sends a request once. The error is a *RefusedError or a *later; rejected profiles of a request
// that was taken are no error.
func (c *client) send(ctx context.Context, r *Request) (rejected int64, why string, err error) {
	body, address := r.Body, c.base
	if !c.Exact {
		address = strings.TrimRight(c.base, "/") + r.Path
	}
	if !c.Plain {
		body = compress(body)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, "", &RefusedError{Status: err.Error()}
	}
	req.Header.Set("Content-Type", r.ContentType)
	req.Header.Set("User-Agent", "ccagent")
	if !c.Plain {
		req.Header.Set("Content-Encoding", "gzip")
	}
	if r.ContentType == connectProto {
		req.Header.Set("Connect-Protocol-Version", "1")
	}
	for k, v := range c.Headers {
		req.Header.Set(k, v)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return 0, "", &later{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer))
	if err != nil {
		return 0, "", &later{err: fmt.Errorf("read the answer: %w", err)}
	}
	switch s := answer.StatusCode; {
	case s >= 200 && s < 300:
		rejected, why, err := c.Engine.Answer(answer.Header.Get("Content-Type"), text)
		if err != nil {
			return 0, "", &later{err: err}
		}
		return rejected, why, nil
	case s == http.StatusTooManyRequests, s == http.StatusRequestTimeout, s >= 500 && s != http.StatusNotImplemented:
		return 0, "", &later{err: errors.New(answer.Status), after: retryAfter(answer.Header.Get("Retry-After"))}
	}
	return 0, "", &RefusedError{answer.Status, beginning(text)}
}

// maxAfter bounds how long an engine may ask to wait.
const maxAfter = time.Hour

func retryAfter(s string) time.Duration {
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxAfter)
	}
	if at, err := http.ParseTime(s); err == nil {
		return min(max(time.Until(at), 0), maxAfter)
	}
	return 0
}

// beginning is what of an answer's text is shown.
func beginning(text []byte) string {
	const most = 200
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(text[:min(len(text), most)]), "")), " ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
