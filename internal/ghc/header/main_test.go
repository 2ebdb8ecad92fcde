package main

import (
	"os"
	"testing"
)

// bpf/c/ghc.h is what the generator writes.
func TestHeaderIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../bpf/c/ghc.h")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != text() {
		t.Error("bpf/c/ghc.h is not what internal/ghc says: run go generate ./bpf")
	}
}
