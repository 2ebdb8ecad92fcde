package rtsites

import (
	"debug/elf"

	"golang.org/x/arch/x86/x86asm"

	"ccagent/bpf"
	"ccagent/internal/ghc"
)

// Transactions holds the sites of one run-time system at which an attempt to run a transaction ends, as module
// addresses. Each is the conditional jump on whether the attempt was valid, with the zero flag set if it was
// not: whatever register the result is in.
type Transactions struct {
	// Ends is indexed by how a valid attempt ends there; 0 for a site that was not found, and at
	// bpf.TransactionFailed.
	Ends [bpf.TransactionEnds]uint64
	// NoTRec is stg_NO_TREC_closure; 0 if it was not found.
	NoTRec uint64
	// Lacks names the ends whose sites were not found.
	Lacks []string
}

// FindTransactions finds the sites at which attempts to run a transaction end.
func FindTransactions(symbols *Symbols) (*Transactions, error) {
	if symbols.File.Machine != elf.EM_X86_64 {
		return nil, ErrMachine
	}
	x := finder{symbols}
	if x.Addr(ghc.SymAtomicallyFrame) == 0 || x.Addr(ghc.SymCommit) == 0 {
		return nil, ErrNoSymbols
	}
	s := &Transactions{NoTRec: x.Addr(ghc.SymNoTRec)}
	if s.Ends[bpf.TransactionCommitted] = x.tested(ghc.SymCommit, ghc.SymAtomicallyFrame); s.Ends[bpf.TransactionCommitted] == 0 {
		return nil, &MissingError{"test of stmCommitTransaction's result"}
	}
	if s.Ends[bpf.TransactionRetried] = x.tested(ghc.SymSTMWait, ghc.SymRetry); s.Ends[bpf.TransactionRetried] == 0 {
		s.Lacks = append(s.Lacks, "those that retry")
	}
	if s.Ends[bpf.TransactionThrown] = x.tested(ghc.SymValidate, ghc.SymRaise); s.Ends[bpf.TransactionThrown] == 0 {
		s.Lacks = append(s.Lacks, "those that end by an exception")
	}
	if s.NoTRec == 0 {
		s.Lacks = append(s.Lacks, "the CPU time that is thrown away")
	}
	return s, nil
}

// tested returns the address of the first jump on zero behind the call of a procedure in another, where
// that follows a test of a register: 0 if there is none.
func (x *finder) tested(callee, caller string) (found uint64) {
	target := x.Addr(callee)
	called, tested := false, false
	if target == 0 {
		return 0
	}
	x.each(caller, func(at uint64, inst x86asm.Inst) bool {
		switch {
		case !called:
			called = inst.Op == x86asm.CALL && goesTo(at, inst) == target
		case inst.Op == x86asm.TEST && inst.Args[0] == inst.Args[1]:
			tested = true
			return true
		case inst.Op == x86asm.JE || inst.Op == x86asm.JNE:
			if tested {
				found = at
			}
			return false
		case inst.Op == x86asm.JMP || inst.Op == x86asm.RET:
			return false
		}
		tested = false
		return true
	})
	return found
}
