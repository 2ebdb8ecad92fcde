// Package doctor checks whether this machine can profile, and what a Haskell
// program at hand will show: every finding that is not good comes with its
// remedy.
package doctor

// Status is how a check went.
type Status string

const (
	OK      Status = "ok"
	Warning Status = "warning" // works, but something will be missing
	Failed  Status = "failed"  // does not work
)

// Check is one finding.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // for what is not OK
}

// Healthy reports whether no check failed.
func Healthy(checks []Check) bool {
	for _, c := range checks {
		if c.Status == Failed {
			return false
		}
	}
	return true
}
