package bpf

import (
	"bytes"
	"errors"
	"os"
)

// ErrNoJIT is returned if the kernel interprets BPF programs: the interpreter does not
// support callbacks, which the walker's loops use. On some architectures the kernel's
// compiler is off by default.
var ErrNoJIT = errors.New("the kernel does not compile BPF programs")

// JITHelp is advice for the user on ErrNoJIT.
const JITHelp = "turn the compiler on: sysctl net.core.bpf_jit_enable=1"

func jitIsOff() bool {
	setting, err := os.ReadFile("/proc/sys/net/core/bpf_jit_enable")
	return err == nil && string(bytes.TrimSpace(setting)) == "0"
}
