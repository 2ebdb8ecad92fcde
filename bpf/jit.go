package bpf

import (
	"bytes"
	"errors"
	"os"
)

// ErrNoJIT is returned where BPF programs are interpreted: the interpreter knows no
// callbacks, which the walker's loops are. Some architectures' kernels begin that way.
var ErrNoJIT = errors.New("the kernel does not compile BPF programs")

// JITHelp says what to do about it.
const JITHelp = "turn the compiler on: sysctl net.core.bpf_jit_enable=1"

func jitIsOff() bool {
	setting, err := os.ReadFile("/proc/sys/net/core/bpf_jit_enable")
	return err == nil && string(bytes.TrimSpace(setting)) == "0"
}
