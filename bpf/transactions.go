package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// TransactionEnd is how an attempt to run a transaction has ended.
type TransactionEnd = samplerTransactionEnd

// Ends of attempts, in SampleHeader.Site of their samples.
const (
	TransactionCommitted = samplerTransactionEndTRANSACTION_COMMITTED
	TransactionFailed    = samplerTransactionEndTRANSACTION_FAILED
	TransactionRetried   = samplerTransactionEndTRANSACTION_RETRIED
	TransactionThrown    = samplerTransactionEndTRANSACTION_THROWN
	TransactionEnds      = samplerTransactionEndTRANSACTION_ENDS
)

// Flags of samples in SampleHeader.Flags that are not written to the log as they are.
const (
	// SampleInTransaction marks samples of CPU time inside of a transaction, and SampleNoted those of
	// which it is counted how the attempt ends.
	SampleInTransaction = uint16(samplerSampleFlagsSAMPLE_IN_TRANSACTION)
	SampleNoted         = uint16(samplerSampleFlagsSAMPLE_NOTED)
)

// TransactionWindow is the window in which attempts are counted.
type TransactionWindow = samplerTransactionWindow

// TransactionAccount holds the counts of one process image's attempts.
type TransactionAccount = samplerTransactionAccount

// NoteTransactions has programs of events that are loaded from now on note which of their samples are inside
// of transactions: those of the events for which of returns true.
func (s *Sampler) NoteTransactions(of func(event int) bool) { s.transactions = of }

// TransactionResult is where a probe finds whether an attempt was valid: ResultInFlag, or ResultIn a register.
type TransactionResult uint8

// ResultInFlag has the zero flag set if the attempt was not valid.
const ResultInFlag TransactionResult = 0

// ResultIn has the register of that number 0 if the attempt was not valid (arm64).
func ResultIn(register int) TransactionResult { return TransactionResult(register + 1) }

// TransactionCookie is the cookie of a probe where a valid attempt ends so.
func TransactionCookie(incarnation uint32, end TransactionEnd, result TransactionResult) uint64 {
	return uint64(incarnation)<<8 | uint64(result)<<transactionResultShift | uint64(end)
}

const transactionResultShift = 2

// TransactionProgram loads the program that runs where attempts end. If multi is set it is made for links of
// many probes. It samples attempts as the event with that index. The sampler owns it.
func (s *Sampler) TransactionProgram(event int, multi bool) (*ebpf.Program, error) {
	return s.load(samplerProgOnTransaction, event, &s.others, func(spec *ebpf.CollectionSpec, _ map[string]*ebpf.Map) error {
		if multi {
			spec.Programs[samplerProgOnTransaction].AttachType = ebpf.AttachTraceUprobeMulti
		}
		return nil
	})
}

// ControlTransactions sets the window in which attempts are counted.
func (s *Sampler) ControlTransactions(c TransactionWindow) error {
	if err := s.maps.TransactionControl.Put(uint32(0), c); err != nil {
		return fmt.Errorf("set the window of transactions: %w", err)
	}
	return nil
}

// TransactionSpent is the ring buffer that gets a record when as many probes of transactions were hit as TransactionWindow.Most
// says. The sampler owns it.
func (s *Sampler) TransactionSpent() *ebpf.Map { return s.maps.TransactionSpent }

// TransactionRound is the TransactionWindow.Round of a record of TransactionSpent; false if it is none.
func TransactionRound(record []byte) (round uint64, ok bool) {
	if len(record) != 8 {
		return 0, false
	}
	return binary.NativeEndian.Uint64(record), true
}

// OpenTransactions creates the counts of a process image.
func (s *Sampler) OpenTransactions(incarnation uint32) error {
	if err := s.maps.TransactionAccounts.Put(incarnation, &TransactionAccount{}); err != nil {
		return fmt.Errorf("open an account of transactions: %w", err)
	}
	return nil
}

// Transactions reads the current counts of an image.
func (s *Sampler) Transactions(incarnation uint32) (a TransactionAccount, err error) {
	if err := s.maps.TransactionAccounts.Lookup(incarnation, &a); err != nil {
		return a, fmt.Errorf("read an account of transactions: %w", err)
	}
	return a, nil
}

// CloseTransactions deletes an image's counts. It is no error if there are none.
func (s *Sampler) CloseTransactions(incarnation uint32) error {
	if err := s.maps.TransactionAccounts.Delete(incarnation); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("close an account of transactions: %w", err)
	}
	return nil
}
