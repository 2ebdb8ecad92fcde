package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	// More than 1 GiB ends it. (Its peak by the kernel's count would be that of this process, if that is higher: it begins as a copy.)
	c := exec.Command("sh", "-c", `ulimit -d 1048576 && exec "$0" info "$1"`, binary, path)
	c.Stderr = &stderr
	if c.Run() == nil {
		t.Fatal("the bomb is shown")
	}
	if status := c.ProcessState.ExitCode(); status != exitUnreadable || !strings.Contains(stderr.String(), "gunzip") {
		t.Errorf("%d bytes of gzip: status %d, %.1000s", zipped.Len(), status, stderr.String())
	}
}
