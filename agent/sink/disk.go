package sink

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"ccagent/agent/invoker"
	"ccagent/internal/pagecache"
)

// Disk creates and writes the files of logs in a goroutine of its own. A disk may take nothing for minutes, and a write to it then
// blocks in the kernel: here it blocks that goroutine, and what is written to the logs meanwhile is kept in memory.
// No method waits for the disk, except Close.
type Disk struct {
	mu    sync.Mutex
	more  *sync.Cond
	jobs  []func()
	held  int             // bytes that wait in all logs
	open  map[string]bool // paths of the logs that are written
	begun time.Time       // the job that is being done; zero if none is
	over  bool
	ended chan struct{}
}

const (
	// logRoom is how many bytes a log has in the Disk's hands at most, and diskRoom all logs together. What is beyond
	// that stays with the log's writer.
	logRoom  = 1 << 20
	diskRoom = 64 << 20
	// patience is for how long what was handed over may wait before the disk is said to hang.
	patience = 5 * time.Second
)

// ErrSlow is wrapped by the problems of logs whose disk takes nothing, without an error.
var ErrSlow = errors.New("the disk does not take what is written")

// errBehind is why a log takes no more for the moment.
var errBehind = fmt.Errorf("%w as fast as it comes", ErrSlow)

// NewDisk starts a Disk.
func NewDisk() *Disk {
	d := &Disk{open: map[string]bool{}, ended: make(chan struct{})}
	d.more = sync.NewCond(&d.mu)
	go d.work()
	return d
}

// Do has something done that may wait for the disk, after all that was asked for before.
func (d *Disk) Do(job func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jobs = append(d.jobs, job)
	d.more.Signal()
}

func (d *Disk) work() {
	defer close(d.ended)
	for {
		d.mu.Lock()
		for len(d.jobs) == 0 && !d.over {
			d.more.Wait()
		}
		if len(d.jobs) == 0 {
			d.mu.Unlock()
			return
		}
		job := d.jobs[0]
		d.jobs, d.begun = d.jobs[1:], time.Now()
		d.mu.Unlock()
		job()
		d.mu.Lock()
		d.begun = time.Time{}
		d.mu.Unlock()
	}
}

// Close waits until all is done.
func (d *Disk) Close() {
	d.mu.Lock()
	d.over = true
	d.more.Signal()
	d.mu.Unlock()
	<-d.ended
}

// Open reports whether the log at a path has been created and not been closed yet.
func (d *Disk) Open(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.open[path]
}

func (d *Disk) opened(path string, is bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is {
		d.open[path] = true
	} else {
		delete(d.open, path)
	}
}

// stands is for how long the disk has taken nothing.
func (d *Disk) stands(now time.Time) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun.IsZero() {
		return 0
	}
	return now.Sub(d.begun)
}

// take counts bytes that will wait, unless there is no room for them.
func (d *Disk) take(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held+n > diskRoom {
		return false
	}
	d.held += n
	return true
}

// give counts bytes that do not wait any more.
func (d *Disk) give(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held -= n
}

// beside is the file of a log that a Disk creates and writes. Its methods do not wait for the disk until attend is called; from then
// on each write is made by the caller, who gets its error.
type beside struct {
	disk   *Disk
	create func() (*invoker.Log, error)

	mu       sync.Mutex
	idle     *sync.Cond // working has ended
	file     *invoker.Log
	pending  []byte // whole blocks
	since    time.Time
	working  bool
	attended bool
	size     int64 // bytes written
	err      error // of the last attempt
	lost     error // what somebody did to the file
}

func newBeside(d *Disk, create func() (*invoker.Log, error)) *beside {
	b := &beside{disk: d, create: create, since: time.Now()}
	b.idle = sync.NewCond(&b.mu)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kick()
	return b
}

// kick has the Disk create the file and write what waits. The caller holds the lock.
func (b *beside) kick() {
	if b.working || b.attended || b.file != nil && len(b.pending) == 0 {
		return
	}
	b.working = true
	b.disk.Do(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.attempt()
		for b.err == nil && len(b.pending) > 0 && !b.attended {
			b.attempt()
		}
		b.working = false
		b.idle.Broadcast()
	})
}

// attempt creates the file if there is none, and writes what waits. The caller holds the lock, which is free meanwhile.
func (b *beside) attempt() {
	file, text := b.file, b.pending
	b.pending = nil
	b.mu.Unlock()
	var err, lost error
	if file == nil {
		if file, err = b.create(); err == nil {
			b.disk.opened(file.Path, true)
		}
	}
	if err == nil && len(text) > 0 {
		var n int
		n, err = file.Write(text)
		if err == nil && n < len(text) {
			err = io.ErrShortWrite
		}
		if err != nil && n > 0 { // what is there ends with a whole block
			if end, problem := file.Seek(-int64(n), io.SeekCurrent); problem == nil {
				err = errors.Join(err, file.Truncate(end))
			}
		}
	}
	b.mu.Lock()
	b.file, b.err = file, err
	if err != nil {
		b.pending = append(text, b.pending...)
		return
	}
	b.size += int64(len(text))
	b.disk.give(len(text))
	b.since = time.Now()
	if b.lost == nil {
		size := b.size
		b.mu.Unlock()
		lost = lostOf(file, size)
		b.mu.Lock()
		b.lost = lost
	}
}

// problemAt is why nothing is written at a time, nil if something is. The caller holds the lock.
func (b *beside) problemAt(now time.Time) error {
	switch {
	case b.err != nil:
		return b.err
	case !b.working && len(b.pending) == 0:
		return nil
	}
	// It may wait for what others have handed over.
	if late := max(now.Sub(b.since), b.disk.stands(now)); late > patience {
		return fmt.Errorf("%w for %v", ErrSlow, late.Round(time.Second))
	}
	return nil
}

// Problem is why what was handed over is not written, nil if it is, or will be in a moment. What has failed is tried again.
func (b *beside) Problem() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.kick()
	return b.problemAt(time.Now())
}

// Write takes whole blocks to be written, or, where that waits already for long or is much, none.
func (b *beside) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attended {
		return b.writeNow(text)
	}
	if err := b.problemAt(time.Now()); err != nil {
		b.kick()
		return 0, err
	}
	if len(b.pending) > 0 && len(b.pending)+len(text) > logRoom || !b.disk.take(len(text)) {
		return 0, errBehind
	}
	if !b.working && len(b.pending) == 0 {
		b.since = time.Now()
	}
	b.pending = append(b.pending, text...)
	b.kick()
	return len(text), nil
}

// writeNow writes what waits, and text after it. The caller holds the lock.
func (b *beside) writeNow(text []byte) (int, error) {
	if len(b.pending) > 0 || b.file == nil {
		if b.attempt(); b.err != nil {
			return 0, b.err
		}
	}
	if len(text) == 0 {
		return 0, nil
	}
	b.disk.give(-len(text))
	b.pending = append(b.pending, text...)
	if b.attempt(); b.err != nil {
		b.disk.give(len(text)) // whoever writes keeps it
		b.pending = b.pending[:len(b.pending)-len(text)]
		return 0, b.err
	}
	return len(text), nil
}

// attend has the caller wait for the disk from now on.
func (b *beside) attend() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attended = true
	for b.working {
		b.idle.Wait()
	}
}

// path is the file's, empty while there is none.
func (b *beside) path() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return ""
	}
	return b.file.Path
}

// wasLost is what somebody did to the file, once.
func (b *beside) wasLost() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// end closes the file, removes it if that is wished or if it is empty. Nothing of it is written later. It waits for the disk.
func (b *beside) end(remove bool) error {
	b.attend()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.disk.give(len(b.pending))
	b.pending = nil
	if b.file == nil {
		return nil
	}
	var err error
	if remove || b.size == 0 {
		err = b.file.Remove()
	} else {
		pagecache.Begin(b.file.File)
	}
	b.disk.opened(b.file.Path, false)
	return errors.Join(err, b.file.Close())
}

// lostOf is what somebody did to a log's file that has so many bytes.
func lostOf(file *invoker.Log, size int64) error {
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("examine log: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && st.Nlink == 0:
		return fmt.Errorf("%s was deleted during the capture: nothing of it will be left", file.Path)
	case info.Size() < size:
		return fmt.Errorf("%s was truncated during the capture: what it held before is lost", file.Path)
	}
	return nil
}
