//go:build !linux

package eventlog

import "os"

// Lock does nothing where no capture can be made.
func Lock(*os.File) error { return nil }

// BeingWritten reports whether another open file holds the Lock on this log:
// never, where none can.
func BeingWritten(*os.File) bool { return false }
