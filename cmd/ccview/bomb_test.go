package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A gzip file of little more than a megabyte that holds a profile of 650 million empty
// samples is refused with exit status 1 and what to do, in less than 1 GiB of memory.
func TestGzipBombIsRefused(t *testing.T) {
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.DefaultCompression)
	z.Write([]byte("\x0a\x04\x08\x01\x10\x02\x32\x00"))
	samples := bytes.Repeat([]byte("\x12\x00"), 1<<20)
	for range 650 {
		z.Write(samples)
	}
	z.Close()
	path := filepath.Join(t.TempDir(), "bomb.pb.gz")
	if err := os.WriteFile(path, zipped.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	c := exec.Command(binary, "info", path)
	c.Stderr = &stderr
	if c.Run() == nil {
		t.Fatal("the bomb is shown")
	}
	if status := c.ProcessState.ExitCode(); status != exitUnreadable || !strings.Contains(stderr.String(), "gunzip") {
		t.Errorf("status %d, %s", status, stderr.String())
	}
	if kib := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; kib > 1<<20 {
		t.Errorf("%d bytes of gzip took %d MiB of memory", zipped.Len(), kib>>10)
	}
}
