package rtsites

import (
	"debug/elf"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// TaskVariable says where a run-time system keeps the Task of an OS thread: in its variable my_task, which in the threaded way is
// thread-local (rts/Task.h). The zero value is one that was not found.
type TaskVariable struct {
	// Offset is where it is from the thread pointer, if it is in the executable.
	Offset int64
	// Module is the address of the word where the dynamic linker puts the number of the library that has it, and InModule where
	// it is in the library's thread-local variables.
	Module   uint64
	InModule uint64
	// First is the address of the word that has the only Task of a run-time system that is not threaded: the capability's
	// running_task.
	First uint64
}

const (
	// wordBytes is the size of the variable. A run-time system has no other thread-local one, where its collector keeps its state in a register.
	wordBytes = 8
	// maxRelocationBytes bounds the tables of relocations that are read of a run-time system's library. The largest has 200 KB.
	maxRelocationBytes = 16 << 20
	// maxThreadLocal bounds the thread-local variables of an executable.
	maxThreadLocal = 1 << 30
)

// FindTask finds the variable. symbols are asked for only where the file's headers do not suffice.
func FindTask(f *elffile.File, library, threaded bool, symbols func() (*Symbols, error)) TaskVariable {
	if f.Machine != elf.EM_X86_64 { // elsewhere it is no thread-local variable, but a key of the C library's
		return TaskVariable{}
	}
	if !threaded {
		if s, err := symbols(); err == nil && s.Addr(ghc.SymMainCapability) != 0 {
			return TaskVariable{First: s.Addr(ghc.SymMainCapability) + ghc.BaseOfCapability + ghc.BaseRunningTask}
		}
		return TaskVariable{}
	}
	local, at, found := threadLocal(f, symbols)
	if !found {
		return TaskVariable{}
	}
	if !library {
		// Those of the executable end at the thread pointer (System V ABI, ELF Handling For Thread-Local Storage, variant II).
		align := max(local.Align, 1)
		if align&(align-1) != 0 || align > maxThreadLocal {
			return TaskVariable{}
		}
		size := (local.Memsz + align - 1) &^ (align - 1)
		return TaskVariable{Offset: int64(at) - int64(size)}
	}
	numbers, err := f.Relocations(uint32(elf.R_X86_64_DTPMOD64), maxRelocationBytes)
	if err != nil || len(numbers) == 0 {
		return TaskVariable{}
	}
	return TaskVariable{Module: numbers[0].Offset, InModule: at}
}

// threadLocal returns the segment of the file's thread-local variables, and where the Task is in it.
func threadLocal(f *elffile.File, symbols func() (*Symbols, error)) (local elffile.Segment, at uint64, found bool) {
	for _, s := range f.Segments {
		if s.Type == elf.PT_TLS {
			local, found = s, s.Memsz >= wordBytes && s.Memsz <= maxThreadLocal
		}
	}
	if !found || local.Memsz == wordBytes {
		return local, 0, found
	}
	s, err := symbols()
	if err != nil {
		return local, 0, false
	}
	task := s.Named(ghc.SymMyTask)
	return local, task.Addr, task.Type == elf.STT_TLS && task.Addr <= local.Memsz-wordBytes
}
