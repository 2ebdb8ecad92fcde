package columns

import (
	"slices"

	"ccagent/eventlog"
)

// maxAttempts bounds the sampled attempts to run transactions that are kept of a log.
const maxAttempts = 1 << 18

// attempt keeps a sampled attempt to run a transaction.
func (b *builder) attempt(ev *eventlog.TransactionVariables) {
	p := b.p
	if len(p.Attempts) == maxAttempts {
		p.Accounting.Dropped++
		return
	}
	a := *ev
	node, ok := b.stacks.nodes.resolve(ev.Node)
	if !ok {
		p.Accounting.Undefined.Nodes++
	}
	a.Node, a.Variables = node, nil
	for _, v := range ev.Variables {
		if len(a.Variables) < eventlog.MaxTransactionVariables && !slices.Contains(a.Variables, v) {
			a.Variables = append(a.Variables, v)
		}
	}
	p.Attempts = append(p.Attempts, a)
}
