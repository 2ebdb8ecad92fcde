// Command fleet has many agents send pieces of logs to one collector of OpenTelemetry on this machine, each
// as many a minute as its host has processes, and prints what that takes.
//
//	fleet [-agents N] [-processes N] [-minutes N] -collector OTELCOL DIR
//
// DIR has the pieces of a daemon. They are made into requests once; what is sent, and how, is the
// daemon's own (package push). Sizes of what a backend stores follow from the pieces.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"ccagent/profile"
	"ccagent/profile/pieces"
	"ccagent/push"
	"ccagent/scripts/collector"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

type options struct {
	agents, processes int
	minutes           float64
	collector, dir    string
}

func run(args []string) error {
	var o options
	fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
	fs.IntVar(&o.agents, "agents", 500, "how many agents send")
	fs.IntVar(&o.processes, "processes", 10, "how many processes each has")
	fs.Float64Var(&o.minutes, "minutes", 3, "for how long")
	fs.StringVar(&o.collector, "collector", "", "OpenTelemetry's collector, of internal/engines")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 || o.collector == "" {
		return errors.New("usage: fleet [-agents N] [-processes N] [-minutes N] -collector OTELCOL DIR")
	}
	o.dir = fs.Arg(0)
	requests, samples, err := prepare(o.dir)
	if err != nil {
		return err
	}
	if err := send(&o, requests); err != nil {
		return err
	}
	return stored(&o, requests, samples)
}

// prepare makes the requests of all pieces.
func prepare(dir string) (all []*push.Request, samples uint64, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*"+pieces.Extension))
	if err != nil {
		return nil, 0, err
	}
	for _, path := range paths {
		if strings.Contains(path, "/probe/") {
			continue
		}
		b, err := push.Read(path, profile.Range{}, push.Rules{})
		if err != nil {
			return nil, 0, err
		}
		for _, p := range b.Profiles {
			samples += uint64(len(p.Sample))
		}
		r, err := push.OTLP.Request([]*push.Batch{b})
		if err != nil {
			return nil, 0, err
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil, 0, fmt.Errorf("%s has no pieces", dir)
	}
	return all, samples, nil
}

// timed is a transport that notes how long each request took, and what it was on the wire.
type timed struct {
	to http.RoundTripper

	mu    sync.Mutex
	took  []time.Duration
	bytes int64
}

func (t *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	begun := time.Now()
	answer, err := t.to.RoundTrip(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, time.Since(begun))
	t.bytes += r.ContentLength
	return answer, err
}

func send(o *options, requests []*push.Request) error {
	dir, err := os.MkdirTemp("", "fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := collector.Start(o.collector, dir)
	if err != nil {
		return err
	}
	wire := &timed{to: &http.Transport{MaxIdleConnsPerHost: o.agents, MaxIdleConns: o.agents}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var queues []*push.Queue
	var running sync.WaitGroup
	duration := time.Duration(o.minutes * float64(time.Minute))
	begun := time.Now()
	for range o.agents {
		q, err := push.NewQueue(&push.Target{Engine: push.OTLP, URL: "http://" + c.Address, Transport: wire}, push.Options{
			Request: func(context.Context, []string, push.Engine) (*push.Request, int, error) {
				return requests[rand.IntN(len(requests))], 1, nil
			},
		})
		if err != nil {
			return err
		}
		queues = append(queues, q)
		running.Go(func() { q.Run(ctx) })
		running.Go(func() { // all pieces of a host are closed together, each host's at a time of its own
			for next := begun.Add(rand.N(time.Minute)); next.Before(begun.Add(duration)); next = next.Add(time.Minute) {
				time.Sleep(time.Until(next))
				for n := range o.processes {
					q.Add(fmt.Sprint(n))
				}
			}
		})
	}
	time.Sleep(time.Until(begun.Add(duration)))
	var total push.Stats
	late := 0
	for _, q := range queues {
		s := q.Stats()
		total.Sent, total.Bytes, total.Attempts, total.Rejected = total.Sent+s.Sent, total.Bytes+s.Bytes, total.Attempts+s.Attempts, total.Rejected+s.Rejected
		late += s.Waiting
		for reason, n := range s.Dropped {
			return fmt.Errorf("%d pieces were dropped: %s", n, reason)
		}
	}
	if total.Sent == 0 {
		return errors.New("nothing was sent: each agent begins at some time of the first minute")
	}
	elapsed := time.Since(begun)
	cancel()
	running.Wait()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := c.Wait(); err != nil {
		return err
	}
	usage := c.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	slices.Sort(wire.took)
	at := func(share int) time.Duration {
		return wire.took[(len(wire.took)-1)*share/100].Round(100 * time.Microsecond)
	}
	fmt.Printf("| %d agents of %d processes, %v | |\n|---|---|\n", o.agents, o.processes, elapsed.Round(time.Second))
	fmt.Printf("| requests | %d sent in %d attempts, %.0f a second; %d profiles rejected, %d wait at the end |\n", total.Sent, total.Attempts, float64(total.Sent)/elapsed.Seconds(), total.Rejected, late)
	fmt.Printf("| a request | %.1f kB, %.1f kB compressed |\n", float64(total.Bytes)/float64(total.Sent)/1e3, float64(wire.bytes)/float64(total.Attempts)/1e3)
	fmt.Printf("| a host-hour | %.2f MB, %.2f MB on the wire |\n", float64(total.Bytes)/float64(total.Sent)*float64(60*o.processes)/1e6, float64(wire.bytes)/float64(total.Attempts)*float64(60*o.processes)/1e6)
	fmt.Printf("| a request's time | median %v, 99 %% %v, longest %v |\n", at(50), at(99), at(100))
	fmt.Printf("| the collector | %.1f %% of a CPU, %.2f ms a request, %.0f MB at most |\n", 100*cpu.Seconds()/elapsed.Seconds(), 1e3*cpu.Seconds()/float64(total.Sent), float64(usage.Maxrss)/1e3)
	return nil
}

// stored prints what profiles take, compressed, one a piece, and when those of a service are merged.
func stored(o *options, requests []*push.Request, samples uint64) error {
	var each int
	for _, r := range requests {
		each += compressed(r.Body)
	}
	all, _, err := pieces.Scan(o.dir)
	if err != nil {
		return err
	}
	services := map[string][]pieces.Piece{}
	for _, p := range all {
		if p.Service != "probe" {
			services[p.Service] = append(services[p.Service], p)
		}
	}
	var merged, longest int
	for _, of := range services {
		longest = max(longest, len(of))
		p, _, err := pieces.Open(of, pieces.Span{}, nil)
		if err != nil {
			return err
		}
		b, err := push.Of(p, profile.Range{}, push.Rules{})
		if err != nil {
			return err
		}
		r, err := push.OTLP.Request([]*push.Batch{b})
		if err != nil {
			return err
		}
		merged += compressed(r.Body)
	}
	n := float64(len(requests))
	const hosts, hours = 10_000, 24
	day := func(perPiece float64) float64 { return perPiece * float64(60*o.processes) * hosts * hours / 1e12 }
	fmt.Printf("| a piece | %.0f stacks |\n", float64(samples)/n)
	fmt.Printf("| %d hosts a day, one profile a piece, compressed | %.2f TB |\n", hosts, day(float64(each)/n))
	fmt.Printf("| likewise with up to %d pieces of a process in one profile | %.2f TB |\n", longest, day(float64(merged)/n))
	return nil
}

func compressed(b []byte) int {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := io.Copy(w, bytes.NewReader(b)); err != nil {
		return 0
	}
	w.Close()
	return z.Len()
}
