package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// ThreadRegisters is a thread as on_task found it. Its registers are those that it has in user space if it was on no CPU.
type ThreadRegisters = registersThreadRegisters

// Registers is the loaded program that reads the registers of a process's threads, which need not be stopped for that.
type Registers struct {
	program *ebpf.Program
	threads *link.Iter
}

// LoadRegisters loads the program for a process.
func LoadRegisters(pid uint32) (*Registers, error) {
	ns, err := OwnPIDNamespace()
	if err != nil {
		return nil, err
	}
	spec, err := loadRegisters()
	if err != nil {
		return nil, fmt.Errorf("read embedded program of registers: %w", err)
	}
	err = spec.Variables[registersVarProcess].Set(pid)
	if ns != nil {
		err = errors.Join(err, spec.Variables[registersVarPidnsIno].Set(ns.Ino))
	}
	if err != nil {
		return nil, fmt.Errorf("configure the program of registers: %w", err)
	}
	loaded, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kernelTypes()})
	if err != nil {
		return nil, fmt.Errorf("load the program of registers: %w", err)
	}
	defer loaded.Close()
	r := &Registers{program: loaded.DetachProgram(registersProgOnTask)}
	if r.threads, err = link.AttachIter(link.IterOptions{Program: r.program}); err != nil {
		return nil, errors.Join(fmt.Errorf("read registers of threads: %w", err), r.Close())
	}
	return r, nil
}

// Read returns all threads of the process.
func (r *Registers) Read() ([]ThreadRegisters, error) {
	all, err := appendThreads[ThreadRegisters](nil, r.threads)
	if err != nil {
		return nil, fmt.Errorf("read registers of threads: %w", err)
	}
	return all, nil
}

// Close unloads the program.
func (r *Registers) Close() (err error) {
	if r.threads != nil {
		err = r.threads.Close()
	}
	return errors.Join(err, r.program.Close())
}
