package ghc

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a release series of GHC: 9.10 of 9.10.3. Nothing that this package knows of
// changes within a series.
type Version struct{ Major, Minor int }

// Oldest and Newest are the first and the last series that the facts were checked for.
var (
	Oldest = Version{8, 10}
	Newest = Version{9, 14}
)

// ParseVersion parses a version as GHC prints it: "9.10.3".
func ParseVersion(s string) (Version, error) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) < 2 {
		return Version{}, fmt.Errorf("parse GHC version %q: it is not of the form 9.10.3", s)
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return Version{}, fmt.Errorf("parse GHC version %q: %w", s, err)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return Version{}, fmt.Errorf("parse GHC version %q: %w", s, err)
	}
	return Version{major, minor}, nil
}

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Known reports whether the facts were checked for the series.
func (v Version) Known() bool { return !v.Before(Oldest) && !Newest.Before(v) }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
