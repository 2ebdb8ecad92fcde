package rtsites

import (
	"ccagent/bpf"
	"ccagent/internal/ghc"
)

// Transactions holds the sites of one run-time system at which an attempt to run a transaction ends, as module
// addresses. Each is the conditional jump on whether the attempt was valid.
type Transactions struct {
	// Ends is indexed by how a valid attempt ends there; 0 for a site that was not found, and at
	// bpf.TransactionFailed.
	Ends [bpf.TransactionEnds]Outcome
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
	x, err := newFinder(symbols)
	if err != nil {
		return nil, err
	}
	if x.Addr(ghc.SymAtomicallyFrame) == 0 || x.Addr(ghc.SymCommit) == 0 {
		return nil, ErrNoSymbols
	}
	s := &Transactions{NoTRec: x.Addr(ghc.SymNoTRec)}
	if s.Ends[bpf.TransactionCommitted] = x.tested(ghc.SymCommit, ghc.SymAtomicallyFrame); s.Ends[bpf.TransactionCommitted].Addr == 0 {
		return nil, &MissingError{"test of stmCommitTransaction's result"}
	}
	if s.Ends[bpf.TransactionRetried] = x.tested(ghc.SymSTMWait, ghc.SymRetry); s.Ends[bpf.TransactionRetried].Addr == 0 {
		s.Lacks = append(s.Lacks, "those that retry")
	}
	if s.Ends[bpf.TransactionThrown] = x.tested(ghc.SymValidate, ghc.SymRaise); s.Ends[bpf.TransactionThrown].Addr == 0 {
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
func (x *finder) tokens() uint64 { return x.machine.countedDown(x.all(ghc.SymStartTransaction)) }

// tested returns the first branch on the result of the call of a procedure in another.
func (x *finder) tested(callee, caller string) Outcome {
	code := x.all(caller)
	for i := range code {
		if x.calls(&code[i], callee) {
			return x.machine.tested(code[i+1:])
		}
	}
	return Outcome{}
}
