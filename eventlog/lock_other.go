//go:build !linux

package eventlog

import "os"

// Lock does nothing on systems where no capture can be made.
func Lock(*os.File) error { return nil }

// BeingWritten returns false: no log is written on these systems.
func BeingWritten(*os.File) bool { return false }
