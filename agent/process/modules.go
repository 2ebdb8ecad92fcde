package process

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/agent/rtsites"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/internal/fair"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
	"ccagent/symbolize/worker"
)

// maxModules bounds the module files that are held open for symbolising. Programs of one user have mapped at most half of them first:
// who maps files without end leaves others their names.
const (
	maxModules = 4096
	// maxFiles bounds the files that are known, held open or not: all others count as one.
	maxFiles = 4 * maxModules
)

// fileKey identifies a file whatever its name.
type fileKey struct {
	major, minor uint32
	inode        uint64
}

// Module is a file of code that a profiled process has mapped.
type Module struct {
	ID       uint32
	Path     string
	File     *os.File // nil if it could not be opened
	Segments []elffile.Segment
	Binary   binary.Info
	Problem  error // why the file could not be read or is no ELF
	elf      *elffile.File
	unwind   *unwindTable // nil without call frame information

	// symbols are read once they are asked for, or symbolsErr says why they cannot be.
	symbols    *rtsites.Symbols
	symbolsErr error
	task       rtsites.TaskVariable // once it was looked for
	tasked     bool

	linking sync.Once
	exe     *link.Executable // once probes were put into it
	exeErr  error

	// Root is the root directory of the process that mapped it first; nil where it is
	// the agent's own.
	Root *os.File
	// reader is that process's user, with whose rights a debug file is looked for.
	reader credentials.Credentials
}

// modules are all files of code seen so far, each opened once, while the
// process that mapped it lives, so that what is symbolised is what ran.
type modules struct {
	byFile map[fileKey]*Module
	byID   []*Module    // id−1
	held   *fair.Shares // of them, those that are open, by the user of the process that mapped them first
	others *Module      // all beyond maxFiles
	roots  roots
}

func newModules() *modules { return &modules{byFile: map[fileKey]*Module{}, held: fair.Of(maxModules)} }

// errTooManyModules is kept as the reason of modules beyond maxModules.
var errTooManyModules = errors.New("too many module files")

// of returns the module of a mapping; isNew is set if it was not known before.
func (ms *modules) of(pid uint32, m procfs.Mapping) (mod *Module, isNew bool) {
	key := fileKey{m.Major, m.Minor, m.Inode}
	if mod, ok := ms.byFile[key]; ok {
		return mod, false
	}
	if ms.others != nil {
		return ms.others, false
	}
	mod = &Module{ID: uint32(len(ms.byID) + 1), Path: m.Path, reader: userOf(pid)}
	if ms.held.Take(mod.reader.UID, 1) == nil {
		mod.File, mod.Problem = openMapped(pid, m)
		mod.Root = ms.roots.of(pid)
	} else {
		mod.Problem = errTooManyModules
	}
	if mod.File != nil {
		mod.Problem = mod.examine()
	}
	ms.byID = append(ms.byID, mod)
	if len(ms.byID) == maxFiles {
		mod.Path, ms.others = "(other files)", mod
	} else {
		ms.byFile[key] = mod
	}
	return mod, true
}

// userOf gives the user of a process, nobody if that is not known.
func userOf(pid uint32) credentials.Credentials {
	status, err := procfs.ReadStatus(int(pid))
	if err != nil {
		return credentials.Nobody()
	}
	return credentials.Credentials{UID: status.UIDs[1], GID: status.GIDs[1], Groups: status.Groups}
}

// openMapped opens a mapped file through the process's own root, and checks device and inode, so
// that a file that has replaced it is refused.
func openMapped(pid uint32, m procfs.Mapping) (*os.File, error) {
	candidates := []string{
		fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End),
		fmt.Sprintf("/proc/%d/root%s", pid, m.Path),
		m.Path,
	}
	var last error
	for _, path := range candidates {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			last = err
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			last = err
		} else if st.Ino != m.Inode || st.Mode&unix.S_IFMT != unix.S_IFREG {
			last = errors.New("the file was replaced after it was mapped")
		} else {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("open module %s: %w", m.Path, last)
}

func (mod *Module) examine() error {
	info, err := mod.File.Stat()
	if err != nil {
		return fmt.Errorf("examine module %s: %w", mod.Path, err)
	}
	f, err := elffile.Open(mod.File, info.Size())
	if err != nil {
		return fmt.Errorf("examine module %s: %w", mod.Path, err)
	}
	mod.elf, mod.Segments, mod.Binary = f, f.Segments, binary.IdentifyFile(f)
	return nil
}

// bias returns run-time address − module address for a mapping of the module. The module
// addresses of a file that is no ELF are its file offsets.
func (mod *Module) bias(m procfs.Mapping) uint64 {
	for _, s := range mod.Segments {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 {
			continue
		}
		// The kernel maps whole pages around the segment.
		lo := s.Offset &^ 0xfff
		if m.Offset >= lo && m.Offset < s.Offset+s.Filesz {
			return m.Start - (s.Addr - s.Offset + m.Offset)
		}
	}
	return m.Start - m.Offset
}

// define describes the module in a log that does not have it yet.
func (mod *Module) define(time uint64, log *sink.Sink) error {
	if log.Defines(mod.ID) {
		return nil
	}
	e := &eventlog.Module{ID: mod.ID, Path: mod.Path, BuildID: mod.Binary.BuildID, GHCVersion: mod.Binary.GHCVersion}
	if mod.File != nil {
		if info, err := mod.File.Stat(); err == nil {
			e.Size, e.ModTime = uint64(info.Size()), info.ModTime().UnixNano()
		}
	}
	return log.Emit(time, e)
}

func (ms *modules) Close() error {
	var err error
	for _, mod := range ms.byID {
		if mod.File != nil {
			err = errors.Join(err, mod.File.Close())
		}
	}
	return errors.Join(err, ms.roots.Close())
}

// RTSSymbols returns the symbols of the run-time system in the module by which sites are found.
// They are read once, from the module's separate debug file where the module is stripped, or from its .gnu_debugdata.
func (mod *Module) RTSSymbols() (*rtsites.Symbols, error) {
	if mod.symbols == nil && mod.symbolsErr == nil {
		debug, done := mod.Binary.StrippedSymbols(mod.Root, mod.Path, mod.reader)
		defer done()
		if debug == nil && mod.Binary.HasMiniDebug {
			// Where it cannot be read, the module is one without symbols; names say why at the end.
			debug, _ = worker.MiniDebug(context.Background(), mod.elf, mod.File)
		}
		if mod.symbols, mod.symbolsErr = rtsites.ReadSymbols(mod.elf, debug); mod.symbolsErr != nil {
			mod.symbolsErr = fmt.Errorf("examine module %s: %w", mod.Path, mod.symbolsErr)
		}
	}
	return mod.symbols, mod.symbolsErr
}

// ELF returns the module's file, or why it could not be read.
func (mod *Module) ELF() (*elffile.File, error) {
	if mod.elf == nil {
		return nil, fmt.Errorf("examine module %s: %w", mod.Path, mod.Problem)
	}
	return mod.elf, nil
}

// taskVariable returns where the run-time system in the module keeps the Task of each OS thread.
func (mod *Module) taskVariable() rtsites.TaskVariable {
	if !mod.tasked && mod.elf != nil {
		mod.task = rtsites.FindTask(mod.elf, mod.Binary.Library, mod.Binary.Threaded(), mod.RTSSymbols)
	}
	mod.tasked = true
	return mod.task
}

// FileOffset returns the file offset of a module address.
func (mod *Module) FileOffset(addr uint64) (uint64, bool) {
	for _, s := range mod.Segments {
		if addr >= s.Addr && addr < s.Addr+s.Filesz {
			return addr - s.Addr + s.Offset, true
		}
	}
	return 0, false
}
