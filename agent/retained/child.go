package retained

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/heap"
	"ccagent/heap/graph"
	"ccagent/internal/sandbox"
)

const role = "retained"

// Main does a child's work and ends the process if this process is one. A program that calls
// Analyse calls it first thing in main.
func Main() { sandbox.Main(map[string]sandbox.Role{role: child}) }

func child(c *sandbox.Conn, files []*os.File) error {
	_, b, err := c.Receive(maxRequest)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	var req request
	if err := json.Unmarshal(b, &req); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	s, err := snapshot(&req, files)
	if err != nil {
		return err
	}
	r, err := graph.Analyse(s, req.Limit)
	var need *graph.NeedError
	if errors.As(err, &need) || errors.Is(err, graph.ErrTooLarge) {
		return c.Send(sendError, []byte(err.Error()))
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return c.Send(sendResult, text)
}

var errRequest = errors.New("the request contradicts itself")

// snapshot maps the copy. Modules' files are read and not mapped: they may be truncated meanwhile.
func snapshot(req *request, files []*os.File) (*graph.Snapshot, error) {
	s := &graph.Snapshot{GHCVersion: req.GHCVersion, Profiled: req.Profiled, Threaded: req.Threaded, Stable: req.Stable, Filling: req.Filling, AtRest: req.AtRest, Running: req.Running}
	if len(files) == 0 || req.Size == 0 || req.Groups > req.Size/groupBytes || req.GroupsAt > req.Size-req.Groups*groupBytes {
		return nil, errRequest
	}
	copied, err := unix.Mmap(int(files[0].Fd()), 0, int(req.Size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the copy of the heap: %w", err)
	}
	for text := copied[req.GroupsAt:][:req.Groups*groupBytes]; len(text) > 0; text = text[groupBytes:] {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(text[8*i:]) }
		at, n := word(2), word(3)
		if at%8 != 0 || n > req.Size || at > req.Size-n {
			return nil, errRequest
		}
		g := heap.Group{Start: word(0), Free: word(1), Blocks: uint32(word(4) >> 16), Flags: uint16(word(4))}
		b := graph.Block{Group: g}
		if n >= 8 {
			b.Words = unsafe.Slice((*uint64)(unsafe.Pointer(&copied[at])), n/8)
		}
		s.Blocks = append(s.Blocks, b)
	}
	if len(req.MadeText) != len(req.Made)*heap.InfoBytes {
		return nil, errRequest
	}
	for i, pointer := range req.Made {
		s.Regions = append(s.Regions, graph.Region{Start: pointer - heap.InfoBytes, Length: heap.InfoBytes, Memory: bytes.NewReader(req.MadeText), Offset: int64(i) * heap.InfoBytes})
	}
	for _, g := range req.Segments {
		if g.File < 0 || g.File >= len(files) {
			return nil, errRequest
		}
		s.Regions = append(s.Regions, graph.Region{
			Start: g.Start, Length: g.Length, Data: g.Data, Memory: files[g.File], Offset: int64(g.Offset),
		})
	}
	return s, nil
}
