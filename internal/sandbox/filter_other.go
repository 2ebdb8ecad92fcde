//go:build !amd64

package sandbox

// alsoAllowed are system calls that other architectures have no number for.
var alsoAllowed []uintptr
