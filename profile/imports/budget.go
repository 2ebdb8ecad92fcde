package imports

import (
	"errors"
	"fmt"
)

// ErrTooLarge is the error for input that would take more than the budget of an import.
var ErrTooLarge = errors.New("the profile is too large")

// budget limits what an import may use. A few bytes of a profile can cause large
// allocations, and one name may be examined for each of many locations, so both are
// charged before they are spent.
type budget struct {
	memory int64 // bytes, as estimated by the costs below
	names  int64 // bytes of names that are examined
}

func defaultBudget() *budget { return &budget{memory: maxMemory, names: maxNames} }

const (
	maxMemory = 1 << 30
	maxNames  = 1 << 30
)

// These are the bytes of memory for each part of a profile, in this package and in the
// columns of the log that it writes.
const (
	costMessage = 256  // a message of profile.proto, with its entries in slices and maps
	costNumber  = 32   // one element of a repeated number
	costLabel   = 320  // a label of a sample
	costLabels  = 1536 // the maps of a sample that has any labels
	costLine    = 128  // a line of a location
	costString  = 64   // in addition to its bytes
	costComment = 64

	costName   = 128
	costPlace  = 512
	costSymbol = 256
	costNode   = 160
	costSample = 48
)

// hold charges memory.
func (b *budget) hold(bytes int64) error {
	if b.memory -= bytes; b.memory < 0 {
		return fmt.Errorf("%w: it would take more than %d MiB of memory", ErrTooLarge, maxMemory>>20)
	}
	return nil
}

// look charges names that are hashed or searched.
func (b *budget) look(bytes int) error {
	if b.names -= int64(bytes); b.names < 0 {
		return fmt.Errorf("%w: its names are too many and too long", ErrTooLarge)
	}
	return nil
}
