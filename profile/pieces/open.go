package pieces

import (
	"errors"
	"io"
	"os"

	"ccagent/profile"
	"ccagent/profile/rewrite"
)

// ErrNone is returned where there are no pieces to open.
var ErrNone = errors.New("none of the logs is chosen")

// Inputs returns pieces as inputs of package rewrite.
func Inputs(ps []Piece) []rewrite.Input {
	var in []rewrite.Input
	for i := range ps {
		path := ps[i].Path
		in = append(in, rewrite.Input{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
	}
	return in
}

// Open merges pieces into the profile of what they hold within a span. Time 0 is the start of the
// earliest. left counts the events that were damaged.
func Open(ps []Piece, span Span, progress func(done, total int64)) (p *profile.Profile, left uint64, err error) {
	if len(ps) == 0 {
		return nil, 0, ErrNone
	}
	r, ok := span.In(Start(ps))
	if !ok {
		return nil, 0, ErrNone
	}
	inputs := Inputs(ps)
	if progress != nil {
		observe(inputs, ps, progress)
	}
	log, w := io.Pipe()
	var report rewrite.Report
	done := make(chan error, 1)
	go func() {
		var err error
		report, err = rewrite.Write(w, inputs, rewrite.Options{Range: r})
		w.CloseWithError(err)
		done <- err
	}()
	p, err = profile.Load(log)
	log.CloseWithError(io.ErrClosedPipe)
	if problem := <-done; problem != nil {
		return nil, 0, problem
	}
	return p, report.Left, err
}

// observe reports how much of the inputs was read. Each is read twice.
func observe(in []rewrite.Input, ps []Piece, progress func(done, total int64)) {
	var done, total int64
	for i := range ps {
		total += 2 * ps[i].Bytes
	}
	for i := range in {
		open := in[i].Open
		in[i].Open = func() (io.ReadCloser, error) {
			f, err := open()
			return &observed{f, func(n int) {
				done += int64(n)
				progress(min(done, total), total)
			}}, err
		}
	}
}

type observed struct {
	io.ReadCloser
	read func(n int)
}

func (o *observed) Read(b []byte) (int, error) {
	n, err := o.ReadCloser.Read(b)
	o.read(n)
	return n, err
}
