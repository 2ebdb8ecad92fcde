package bpf

import (
	"encoding/binary"
	"io"
	"unsafe"

	"github.com/cilium/ebpf/link"
)

// maxThreads bounds the threads that are read at a time.
const maxThreads = 1 << 20

// appendThreads runs an iterator over threads, and appends the record of type T that its program writes of each.
func appendThreads[T any](all []T, threads *link.Iter) ([]T, error) {
	var one T
	size := int(unsafe.Sizeof(one))
	in, err := threads.Open()
	if err != nil {
		return all, err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, int64(maxThreads*size)))
	if err != nil {
		return all, err
	}
	for ; len(raw) >= size; raw = raw[size:] {
		if _, err := binary.Decode(raw, binary.NativeEndian, &one); err != nil {
			return all, err
		}
		all = append(all, one)
	}
	return all, nil
}
