package bpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// PIDNamespace identifies a pid namespace by the device and inode of its nsfs file.
type PIDNamespace struct{ Dev, Ino uint64 }

// OwnPIDNamespace returns the calling process's pid namespace, or nil if that is the
// initial one.
func OwnPIDNamespace() (*PIDNamespace, error) {
	const initialInode = 0xeffffffc // include/linux/proc_ns.h
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return nil, fmt.Errorf("read own pid namespace: %w; /proc must be mounted", err)
	}
	if st.Ino == initialInode {
		return nil, nil
	}
	return &PIDNamespace{Dev: st.Dev, Ino: st.Ino}, nil
}
