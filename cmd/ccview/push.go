package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ccagent/internal/format"
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/pieces"
	"ccagent/push"
	"ccagent/ui/printer"

	"github.com/spf13/cobra"
)

// pushing holds the flags of a push.
type pushing struct {
	to        []string
	headers   []string
	tls       push.TLS
	timeout   time.Duration
	giveUp    time.Duration
	arguments bool
}

func pushCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	o := &pushing{}
	c := &cobra.Command{
		Use:   "push --to ENGINE=URL FILE|DIR",
		Short: "send logs to a profiling engine",
		Long: `Sends a log, or the chosen logs of a folder, to engines that store the profiles
of a fleet:

  otlp=http://HOST:4318       OpenTelemetry's collector, over HTTP; without an
                              address that of OTEL_EXPORTER_OTLP_ENDPOINT, and
                              the other OTEL_EXPORTER_OTLP_ variables hold too
  pyroscope=http://HOST:4040  Pyroscope
  parca=http://HOST:7070      Parca

What is sent is names and lines of code, weights, and labels of threads and of
the process by OpenTelemetry's conventions; arguments only with --arguments,
source text and environment never.`,
		Args: exactly(1, "a log or a folder"),
		RunE: func(c *cobra.Command, args []string) error { return v.push(c, args[0], o) },
	}
	v.addFlags(c)
	hideOthers(c)
	f := c.Flags()
	f.StringArrayVar(&o.to, "to", nil, "send to `ENGINE=URL`; may be repeated")
	f.StringArrayVar(&o.headers, "header", nil, "send the header `KEY=VALUE` with every request; may be repeated")
	f.StringVar(&o.tls.CA, "ca", "", "trust the certificate authority in `FILE`, not the system's")
	f.StringVar(&o.tls.Certificate, "cert", "", "the client's certificate, in `FILE`")
	f.StringVar(&o.tls.Key, "key", "", "the key of the client's certificate, in `FILE`")
	f.DurationVar(&o.timeout, "timeout", 0, "of one request (default 10s)")
	f.DurationVar(&o.giveUp, "give-up", time.Minute, "try a log for so long where an engine is down, and then send no more")
	f.BoolVar(&o.arguments, "arguments", false, "send the program's arguments too")
	return c
}

// targets makes the targets that the flags and the environment name.
func (o *pushing) targets() ([]*push.Target, error) {
	if len(o.to) == 0 {
		return nil, wrong("push needs --to ENGINE=URL: otlp, pyroscope or parca")
	}
	headers := make(map[string]string)
	for _, h := range o.headers {
		k, v, ok := strings.Cut(h, "=")
		if k = strings.TrimSpace(k); !ok || k == "" || strings.ContainsAny(h, "\r\n\x00") {
			return nil, wrong("--header is KEY=VALUE")
		}
		headers[k] = v
	}
	var ts []*push.Target
	for _, to := range o.to {
		name, url, _ := strings.Cut(to, "=")
		e, err := push.ByName(name)
		if err != nil {
			return nil, wrong("--to %s: %w", to, err)
		}
		t := &push.Target{Engine: e, URL: url, Headers: headers, Timeout: o.timeout, TLS: o.tls}
		if name == push.OTLP.Name {
			if err := t.FromEnv(os.Getenv); err != nil {
				return nil, &wrongCall{err}
			}
		}
		if t.URL == "" {
			return nil, wrong("--to %s: the engine's address is missing, as in --to %s=http://host:port", to, name)
		}
		ts = append(ts, t)
	}
	return ts, nil
}

func (v *view) push(c *cobra.Command, path string, o *pushing) error {
	f, _, err := v.check(c)
	if err != nil {
		return err
	}
	if err := refuseChoice(c, "sends all of a log, or of a --range of time"); err != nil {
		return err
	}
	targets, err := o.targets()
	if err != nil {
		return err
	}
	chosen, choice, folder, err := v.choose(path)
	if err != nil {
		return err
	}
	if !folder {
		p, err := pieces.Look(path)
		if err != nil {
			return unreadable(path, err)
		}
		chosen = []pieces.Piece{p}
	}
	if folder && f.Range != (profile.Range{}) {
		return wrong("--range %s: of a folder's logs the wall clock's time can be chosen, as in 14:30-14:35", v.rng)
	}
	start := make(map[string]time.Time)
	for i := range chosen {
		start[chosen[i].Path] = chosen[i].Start
	}
	read := func(path string) (*push.Batch, error) {
		r := f.Range
		if !choice.Span.Open() {
			var ok bool
			if r, ok = choice.Span.In(start[path]); !ok {
				return &push.Batch{}, nil
			}
		}
		return push.Read(path, r, push.Rules{Arguments: o.arguments})
	}
	var printing sync.Mutex
	var queues []*push.Queue
	report := pushReport{}
	for _, t := range targets {
		q, err := push.NewQueue(t, push.Options{Max: len(chosen), GiveUp: o.giveUp, Read: read, Report: func(s string) {
			printing.Lock()
			defer printing.Unlock()
			v.warn("%s", s)
		}})
		if err != nil {
			return &wrongCall{err}
		}
		for i := range chosen {
			if chosen[i].State != pieces.Growing {
				q.Add(chosen[i].Path)
			}
		}
		queues, report.names = append(queues, q), append(report.names, t.Engine.Name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var all sync.WaitGroup
	for _, q := range queues {
		all.Go(func() { q.Drain(ctx) })
	}
	all.Wait()
	for _, q := range queues {
		report.stats = append(report.stats, q.Stats())
	}
	if err := v.print(report, path); err != nil {
		return err
	}
	return report.failure()
}

// pushReport says what was sent where.
type pushReport struct {
	names []string
	stats []push.Stats
}

// failure is an error if not everything was taken.
func (r pushReport) failure() error {
	for i, s := range r.stats {
		if len(s.Dropped) > 0 || s.Waiting > 0 || s.Rejected > 0 {
			return fmt.Errorf("%s has not taken everything", r.names[i])
		}
	}
	return nil
}

// Text implements printer.Report.
func (r pushReport) Text(w io.Writer, o printer.Options) error {
	p := printer.New(w, o)
	for i, s := range r.stats {
		line := fmt.Sprintf("%s: %s sent, %s", r.names[i], format.Plural(s.Sent, "log"), format.Bytes(s.Bytes))
		if s.Rejected > 0 {
			line += fmt.Sprintf(", %s rejected", format.Plural(s.Rejected, "profile"))
		}
		for _, reason := range slices.Sorted(maps.Keys(s.Dropped)) {
			line += fmt.Sprintf(", %d dropped (%s)", s.Dropped[reason], reason)
		}
		if s.Waiting > 0 {
			line += fmt.Sprintf(", %d not sent", s.Waiting)
		}
		p.Line(line)
	}
	return p.Flush()
}

type pushedJSON struct {
	Engine   string                 `json:"engine"`
	Sent     uint64                 `json:"sent"`
	Bytes    uint64                 `json:"sent_bytes"`
	Attempts uint64                 `json:"attempts"`
	Rejected uint64                 `json:"rejected"`
	Dropped  map[push.Reason]uint64 `json:"dropped"`
	Waiting  int                    `json:"waiting"`
}

// JSON implements printer.Report.
func (r pushReport) JSON(w io.Writer, _ printer.Options) error {
	out := []pushedJSON{}
	for i, s := range r.stats {
		out = append(out, pushedJSON{r.names[i], s.Sent, s.Bytes, s.Attempts, s.Rejected, s.Dropped, s.Waiting})
	}
	return printer.JSON(w, struct {
		Engines []pushedJSON `json:"engines"`
	}{out})
}
