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

	// The threaded run-time system hands out tokens for transactions that begin, in batches of
	// TokenBatch: Batches is the variable max_commits, which has how many it has handed out, and Tokens the offset of
	// Capability.transaction_tokens, which has what is left of a capability's batch (rts/STM.c). 0 for one that
	// was not found.
	Capabilities
	Batches, Tokens uint64
}

// TokenBatch is how many transactions a capability may begin before it needs another batch of tokens.
const TokenBatch = 1024

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
	s.Capabilities, s.Tokens = x.capabilities(), x.tokens()
	if s.Tokens != 0 {
		s.Batches = x.Addr(ghc.SymMaxCommits)
	}
	return s, nil
}

// tokens returns the offset of Capability.transaction_tokens: stmStartTransaction(cap, outer) counts it down. 0 if it
// does not.
func (x *finder) tokens() (offset uint64) {
	read := int64(0)
	x.each(ghc.SymStartTransaction, func(_ uint64, inst x86asm.Inst) bool {
		if inst.Op != x86asm.MOV || inst.DataSize != 32 {
			return true
		}
		const least = 64 // what is before are the registers of Haskell code
		of := func(a x86asm.Arg) int64 {
			if m, is := a.(x86asm.Mem); is && m.Base == x86asm.RDI && m.Index == 0 && m.Disp > least {
				return m.Disp
			}
			return 0
		}
		if at := of(inst.Args[1]); read == 0 {
			read = at
		} else if at := of(inst.Args[0]); at == read {
			offset = uint64(at)
		}
		return offset == 0
	})
	return offset
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
