package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ccagent/internal/sandbox"
	"ccagent/symbolize/elffile"
)

const (
	miniDebugMemory = 256 << 20
	miniDebugBytes  = 64 << 20 // of the symbols of the largest Haskell programs' functions
	// The daemon's loop waits for the child, and systemd's watchdog for the loop. A few megabytes of symbols take a second or two of CPU time,
	// which a busy machine may need many seconds to give.
	miniDebugCPU  = 10 // seconds
	miniDebugTime = 20 * time.Second
)

// The child sends one message of package sandbox: a status with what it is about.
const (
	miniDebugUnpacked = iota
	miniDebugFailed
)

// MiniDebug gives the symbols that a stripped file has in its .gnu_debugdata, which a child decompresses; nil where it
// has none.
func MiniDebug(parent context.Context, f *elffile.File, file *os.File) (*elffile.File, error) {
	if !f.HasMiniDebug() {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(parent, miniDebugTime)
	defer cancel()
	memory, _ := sandbox.FitMemory(miniDebugMemory)
	c, err := sandbox.Start(ctx, sandbox.Config{Role: roleMiniDebug, Name: "ccagent-symbolize", Memory: memory, CPU: miniDebugCPU}, w, file)
	w.Close()
	if err != nil {
		return nil, fmt.Errorf("start what decompresses symbols: %w", err)
	}
	status, b, err := sandbox.ReadMessage(r, miniDebugBytes)
	if err != nil {
		c.Kill()
	}
	waitErr := c.Wait()
	switch {
	case err == nil && status == miniDebugUnpacked:
		return f.OpenMiniDebug(b)
	case err == nil:
		return nil, errors.New(string(b))
	case waitErr != nil && len(c.Stderr()) > 0:
		return nil, describe(waitErr, c.Stderr())
	}
	return nil, fmt.Errorf("decompress symbols: %w", err)
}

// miniDebugChild is the child's work.
func miniDebugChild(_ *sandbox.Conn, files []*os.File) error {
	out, file := files[0], files[1]
	b, err := unpackMiniDebug(file)
	if err != nil {
		return sandbox.WriteMessage(out, miniDebugFailed, []byte(err.Error()))
	}
	return sandbox.WriteMessage(out, miniDebugUnpacked, b)
}

func unpackMiniDebug(file *os.File) ([]byte, error) {
	f, err := openFile(file)
	if err != nil {
		return nil, err
	}
	return f.UnpackMiniDebug(miniDebugBytes)
}
