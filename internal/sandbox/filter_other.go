//go:build !amd64

package sandbox

// alsoAllowed are system calls that exist only on some architectures.
var alsoAllowed []uintptr
