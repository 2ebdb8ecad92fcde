// Package buildinfo has the version that a binary was built from.
package buildinfo

import "runtime/debug"

// release is the version of this source; the build appends its revision if known.
const release = "0.1.0"

// Version returns the release, followed by "+" and the revision if the build has one.
func Version() string {
	v := release
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "+" + s.Value[:12]
			}
		}
	}
	return v
}
