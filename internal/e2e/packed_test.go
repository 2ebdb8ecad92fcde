package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// packer gives Debian's UPX, which is in no stable release: it is unpacked from backports.
func packer(t *testing.T) string {
	t.Helper()
	if found, err := exec.LookPath("upx"); err == nil {
		return found
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ccagent", "upx")
	if out, err := exec.Command("../../scripts/debian-packages", "bookworm-backports", "amd64", dir, "upx-ucl").CombinedOutput(); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "UPX", Hint: strings.TrimSpace(string(out))})
	}
	return filepath.Join(dir, "usr/bin/upx-ucl")
}

// A program that UPX has packed is refused by name, with what helps.
func TestPackedProgram(t *testing.T) {
	testprog.NeedRoot(t)
	upx := packer(t)
	packed := filepath.Join(sharedDir(t, 0o755), "spin31")
	if out, err := exec.Command(upx, "-q", "-1", "-o", packed, testprog.Build(t, "spin31", testprog.Options{})).CombinedOutput(); err != nil {
		t.Fatalf("upx: %v\n%s", err, out)
	}
	r := run(t, command(t, ccagent, "doctor", packed))
	wantLine(t, strings.Join(strings.Fields(r.stdout), " "), "failed program", "is packed by UPX", "profile it unpacked: upx -d")
	r = run(t, command(t, ccagent, "record", "-e", "cpu-clock", "-o", filepath.Join(t.TempDir(), "run.eventlog"), "--", packed, "1"))
	wantLine(t, r.stderr, "is packed by UPX", "upx -d unpacks it")
}
