// Command workload spends its time in spin and has its TLB misses in stride.
//
// usage: workload ROUNDS
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	rounds := 1
	if len(os.Args) > 1 {
		n, err := strconv.Atoi(os.Args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, "workload:", err)
			os.Exit(2)
		}
		rounds = n
	}
	memory := make([]byte, 32<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	var sum uint64
	for range rounds {
		sum += spin(10_000_000) + stride(memory)
	}
	fmt.Println(sum)
}

//go:noinline
func spin(n int) (s uint64) {
	for i := range n {
		s += uint64(i) * 3
		s ^= s >> 7
	}
	return s
}

// stride reads a byte of every page.
//
//go:noinline
func stride(b []byte) (s uint64) {
	for i := 0; i < len(b); i += 4096 + 64 {
		s += uint64(b[i])
	}
	return s
}
