//go:build !amd64

package hold

import "errors"

// registers reads those of a stopped thread.
func registers(int) (Registers, error) {
	return Registers{}, errors.New("which registers Haskell code has is known here for x86-64 alone")
}
