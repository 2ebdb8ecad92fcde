package stm

import (
	"encoding/binary"

	"ccagent/agent/process"
	"ccagent/internal/ghc"
)

// ownCode reports whether an info table is that of a function or thunk, whose code is that of the closure.
func ownCode(im *process.Image, info uint64) bool {
	if im.MappingOf(info) == nil {
		return false
	}
	var kind [4]byte
	if _, err := im.Memory.ReadAt(kind[:], int64(info-8)); err != nil {
		return false
	}
	t := ghc.ClosureType(binary.NativeEndian.Uint32(kind[:]))
	return t >= ghc.Fun && t <= ghc.ThunkStatic
}
