package retained

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"ccagent/agent/census"
	"ccagent/agent/process"
	"ccagent/heap"
	"ccagent/heap/graph"
	"ccagent/internal/sandbox"
)

// request is the child's first message, as JSON. Numbers of files are from 1; 0 is the copy.
type request struct {
	GHCVersion         string
	Profiled, Threaded bool
	AtRest             bool
	Limit              uint64 // bytes
	Segments           []segment
	Stable, Filling    []uint64
	Running            []heap.Running
	Made               []uint64 // info tables of no file, and their bytes
	MadeText           []byte
	// Groups is where the copy has its descriptors of groups, and how many.
	GroupsAt, Groups uint64
	Size             uint64 // of the copy
}

type segment struct {
	Start, Length, Offset uint64
	Data                  bool
	File                  int
}

// Messages of the child.
const (
	sendResult = 1 // a graph.Result as JSON
	sendError  = 2 // an error's text
)

// Bounds of the messages.
const (
	maxRequest = 64 << 20
	maxResult  = 64 << 20
	// timeout is far more than 10 GB take.
	timeout = 10 * time.Minute
)

// Analyse finds what is retained by whom in a copy of a process's heap. memory is how many bytes the
// child may take beside the copy.
func Analyse(ctx context.Context, im *process.Image, c *census.Copy, memory uint64) (*graph.Result, error) {
	b := &im.RTS.Binary
	memory, less := sandbox.FitMemory(memory)
	req := request{GHCVersion: b.GHCVersion, Profiled: b.Profiled(), Threaded: b.Threaded(), Limit: memory / 4 * 3, Stable: c.Stable, Filling: c.Filling, AtRest: c.AtRest, Running: c.Running, Made: c.Made, MadeText: c.MadeText}
	files := []*os.File{c.File}
	numbers := map[*process.Module]int{}
	end, err := appendGroups(c, &req)
	if err != nil {
		return nil, fmt.Errorf("copy the heap: %w", err)
	}
	for _, s := range c.Segments {
		to := segment{Start: s.Start, Length: s.Length, Offset: s.Offset, Data: s.Data}
		if !s.Data {
			n, known := numbers[s.Module]
			if !known {
				n = len(files)
				numbers[s.Module] = n
				files = append(files, s.Module.File)
			}
			to.File = n
		}
		req.Segments = append(req.Segments, to)
	}
	req.Size = end
	r, err := ask(ctx, &req, memory, files)
	if err != nil && less != "" {
		err = fmt.Errorf("%w (%s)", err, less)
	}
	return r, err
}

// ask has a child do the work.
func ask(ctx context.Context, req *request, memory uint64, files []*os.File) (*graph.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	child, err := sandbox.Start(ctx, sandbox.Config{Role: role, Name: "ccagent-retained", Memory: memory + req.Size}, files...)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(req)
	if err == nil {
		err = child.Send(0, text)
	}
	var head uint64
	var answer []byte
	if err == nil {
		head, answer, err = child.Receive(maxResult)
	}
	if err != nil {
		child.Kill()
	}
	waitErr := child.Wait()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && strings.Contains(string(child.Stderr()), "out of memory"):
		return nil, errors.New("its memory was not enough: allow more with --graph-memory")
	case err != nil && waitErr != nil:
		first, _, _ := strings.Cut(string(child.Stderr()), "\n")
		return nil, fmt.Errorf("%w: %s", waitErr, first)
	case err != nil:
		return nil, err
	case head == sendError:
		return nil, fmt.Errorf("%s: allow more with --graph-memory", answer)
	case head != sendResult:
		return nil, fmt.Errorf("its process answered %d", head)
	}
	r := &graph.Result{}
	if err := json.Unmarshal(answer, r); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	return r, r.Check()
}

// groupBytes is the size of a group's descriptor behind the copy: start, free, place and length in
// the copy, blocks and flags.
const groupBytes = 40

// appendGroups writes the descriptors of groups behind the copy.
func appendGroups(c *census.Copy, req *request) (end uint64, err error) {
	at := uint64(0)
	text := make([]byte, 0, groupBytes*len(c.Groups))
	for i := range c.Groups {
		g := &c.Groups[i]
		at = max(at, g.At+g.Bytes)
		for _, w := range [...]uint64{g.Start, g.Free, g.At, g.Bytes, uint64(g.Blocks)<<16 | uint64(g.Flags)} {
			text = binary.LittleEndian.AppendUint64(text, w)
		}
	}
	for _, s := range c.Segments {
		if s.Data {
			at = max(at, (s.Offset+s.Length+7)&^7)
		}
	}
	req.GroupsAt, req.Groups = at, uint64(len(c.Groups))
	if err := c.File.Truncate(int64(at)); err != nil {
		return 0, err
	}
	_, err = c.File.WriteAt(text, int64(at))
	return at + uint64(len(text)), err
}
