//go:build linux && !amd64 && !arm64

package bpf

// The registers of Haskell code are known for two architectures (c/arch.h). This is the first
// thing that a compiler for another one complains about.
type elsewhere ccagentIsForAMD64AndARM64Alone
