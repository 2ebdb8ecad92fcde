package agent

import (
	"os"
	"testing"

	"ccagent/agent/retained"
)

// TestMain does the work of the confined child that follows pointers.
func TestMain(m *testing.M) {
	retained.Main()
	os.Exit(m.Run())
}
