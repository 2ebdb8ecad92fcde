package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"ccagent/internal/sandbox"
	"ccagent/symbolize/cfi"
	"ccagent/symbolize/elffile"
)

// UnwindTable is a module's call frame information, encoded as cfi does.
// Without any there are no rows.
type UnwindTable struct {
	Base        uint64 // module address that rows count from
	Rows, Rules []byte
	Err         error // why there is no table
	// Paged is set if Haskell code has rows only in Pages (see UnwindPages).
	Paged bool
	Pages []UnwindPage
}

// CompileUnwind compiles the call frame information of modules in a child, as
// Run symbolises in one. Each file's table goes to sink as soon as it is there,
// those that the cache has first; the files must stay open until CompileUnwind returns. A
// child that fails is the error of the tables that it did not make. A nil cache keeps none.
func CompileUnwind(ctx context.Context, cache *UnwindCache, files []*os.File, sink func(file int, t UnwindTable)) {
	var wanted []int // by their numbers in files
	var missing []*os.File
	var keys []string
	for i, f := range files {
		key := cache.key(f)
		if t, ok := cache.load(key); ok {
			sink(i, t)
			continue
		}
		wanted, missing, keys = append(wanted, i), append(missing, f), append(keys, key)
	}
	if len(missing) == 0 {
		return
	}
	n := 0
	made := make([]UnwindTable, len(missing))
	err := compileUnwind(ctx, missing, func(t UnwindTable) {
		sink(wanted[n], t)
		made[n] = t
		n++
	})
	for i := range n { // now that nobody waits for one
		cache.keep(keys[i], &made[i])
	}
	for ; n < len(missing); n++ {
		sink(wanted[n], UnwindTable{Err: err})
	}
}

const (
	// unwindMemory is enough for the code of the largest Haskell programs.
	unwindMemory = 1 << 30
	// unwindTime is for all files of a child.
	unwindTime = 2 * time.Minute
)

func compileUnwind(parent context.Context, files []*os.File, sink func(UnwindTable)) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(parent, unwindTime)
	defer cancel()
	memory, _ := sandbox.FitMemory(unwindMemory)
	config := sandbox.Config{Role: roleUnwind, Name: "ccagent-symbolize", Memory: memory}
	c, err := sandbox.Start(ctx, config, append([]*os.File{w}, files...)...)
	w.Close()
	if err != nil {
		return fmt.Errorf("start its compiler: %w", err)
	}
	var readErr error
	for range files {
		var t UnwindTable
		if t, readErr = readUnwind(r); readErr != nil {
			c.Kill()
			break
		}
		sink(t)
	}
	waitErr := c.Wait()
	switch {
	case readErr == nil:
		return nil
	case parent.Err() != nil:
		return parent.Err()
	case ctx.Err() == context.DeadlineExceeded:
		return fmt.Errorf("not done within %v", unwindTime)
	case waitErr != nil && len(c.Stderr()) > 0:
		return describe(waitErr, c.Stderr())
	}
	return readErr
}

// fileTables is the first file of a compiling child: where it writes tables. Module files
// follow.
const fileTables = 0

// A table crosses the pipe as two messages of package sandbox: a status with an
// error's text or with the rows and, after rows, their base with the rules.
const (
	unwindNone = iota
	unwindFailed
	unwindRows
)

const (
	maxUnwindRules = 1 << 20
	maxUnwindError = 4096
)

var errBadTable = errors.New("compiler of call frame information gave a malformed table")

// readUnwind takes a table from the child, which is not trusted.
func readUnwind(r io.Reader) (UnwindTable, error) {
	return receiveUnwind(func(limit uint64) (uint64, []byte, error) { return sandbox.ReadMessage(r, limit) })
}

func receiveUnwind(receive func(limit uint64) (head uint64, b []byte, err error)) (UnwindTable, error) {
	var t UnwindTable
	status, b, err := receive(uint64(cfi.DefaultLimits.Rows) * cfi.RowSize)
	if err != nil {
		return t, fmt.Errorf("read from the compiler of call frame information: %w", err)
	}
	switch status {
	case unwindNone:
		return t, nil
	case unwindFailed:
		t.Err = errors.New(string(b[:min(len(b), maxUnwindError)]))
		return t, nil
	case unwindRows:
	default:
		return t, fmt.Errorf("%w: status %d", errBadTable, status)
	}
	t.Rows = b
	if t.Base, t.Rules, err = receive(maxUnwindRules * cfi.RuleSize); err != nil {
		return t, fmt.Errorf("read from the compiler of call frame information: %w", err)
	}
	return t, t.check()
}

// check holds a table against what the walker counts on: whole elements, rows
// in order, and rules that are there.
func (t *UnwindTable) check() error {
	if len(t.Rows)%cfi.RowSize != 0 || len(t.Rules)%cfi.RuleSize != 0 {
		return fmt.Errorf("%w: %d bytes of rows, %d of rules", errBadTable, len(t.Rows), len(t.Rules))
	}
	rules := uint32(len(t.Rules) / cfi.RuleSize)
	last := int64(-1)
	for b := t.Rows; len(b) > 0; b = b[cfi.RowSize:] {
		addr, rule := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if int64(addr) <= last || rule >= rules {
			return fmt.Errorf("%w: row at %#x with rule %d of %d", errBadTable, addr, rule, rules)
		}
		last = int64(addr)
	}
	return nil
}

// unwindChild is a child's work.
func unwindChild(_ *sandbox.Conn, files []*os.File) error {
	debug.SetGCPercent(30) // it lives for one table, which is large
	for _, f := range files[fileTables+1:] {
		if err := writeUnwind(files[fileTables], f); err != nil {
			return err
		}
	}
	return nil
}

// writeUnwind compiles a file's table and sends it.
func writeUnwind(out io.Writer, file *os.File) error {
	defer file.Close()
	table, err := compileFile(file)
	return sendUnwind(func(head uint64, b []byte) error { return sandbox.WriteMessage(out, head, b) }, table, err)
}

// sendUnwind sends a table, or why there is none.
func sendUnwind(send func(head uint64, b []byte) error, table *cfi.Table, err error) error {
	switch {
	case errors.Is(err, cfi.ErrNone):
		return send(unwindNone, nil)
	case err != nil:
		return send(unwindFailed, []byte(err.Error()))
	}
	rows := make([]byte, 0, len(table.Rows)*cfi.RowSize)
	for _, r := range table.Rows {
		rows = r.Append(rows)
	}
	rules := make([]byte, 0, len(table.Rules)*cfi.RuleSize)
	for i := range table.Rules {
		rules = table.Rules[i].Append(rules)
	}
	if err := send(unwindRows, rows); err != nil {
		return err
	}
	return send(table.Base, rules)
}

func compileFile(file *os.File) (*cfi.Table, error) {
	f, err := openFile(file)
	if err != nil {
		return nil, err
	}
	return cfi.Compile(f, cfi.DefaultLimits)
}

func openFile(file *os.File) (*elffile.File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return elffile.Open(file, info.Size())
}
