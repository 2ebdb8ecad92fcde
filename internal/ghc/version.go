package ghc

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Version is a release series of GHC: 9.10 of 9.10.3.
type Version struct{ Major, Minor int }

// Oldest and Newest are the first and the last series that the facts were checked for.
var (
	Oldest = Version{8, 10}
	Newest = Version{9, 15} // of GHC's sources of October 2025, which will be released as 10.0
)

// ParseVersion parses a version as GHC prints it: "9.10.3".
func ParseVersion(s string) (Version, error) {
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.ParseUint(first, 10, 16)
	if err == nil {
		var minor uint64
		if minor, err = strconv.ParseUint(second, 10, 16); err == nil {
			return Version{int(major), int(minor)}, nil
		}
	}
	return Version{}, fmt.Errorf("parse GHC version %q, which is not of the form 9.10.3: %w", s, err)
}

// patchOf gives a version's third part: 3 of 9.10.3. A version without one is taken for the last of its series.
func patchOf(s string) int {
	if parts := strings.SplitN(s, ".", 4); len(parts) > 2 {
		if n, err := strconv.ParseUint(parts[2], 10, 31); err == nil {
			return int(n)
		}
	}
	return math.MaxInt
}

// Before reports whether v is older than w.
func (v Version) Before(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

// Known reports whether the facts were checked for the series.
func (v Version) Known() bool { return !v.Before(Oldest) && !Newest.Before(v) }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }
