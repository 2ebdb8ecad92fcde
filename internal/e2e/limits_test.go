package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// Where fewer files may be open than a capture needs, that is what is said, and what to do.
func TestFewDescriptors(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "quick", testprog.Options{})
	log := filepath.Join(t.TempDir(), "run.eventlog")
	for _, limit := range []int{24, 64, 90, 110, 120} {
		r := run(t, command(t, "sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, limit), "sh", ccagent, "record", "-o", log, "--", exe))
		if r.status != 125 || strings.Contains(r.stderr, "5.17") {
			t.Errorf("%d descriptors: status %d\n%s", limit, r.status, r.stderr)
		}
		wantLine(t, r.stderr, fmt.Sprintf("limit on open files is %d", limit), "ulimit -n")
	}
}
