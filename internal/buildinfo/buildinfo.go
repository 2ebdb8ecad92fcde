// Package buildinfo tells what a binary was built from.
package buildinfo

import "runtime/debug"

// release is the version of this source; builds add the revision they know.
const release = "0.1.0"

// Version is the release, and "+" with the revision where the build knows it.
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
