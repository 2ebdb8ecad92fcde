// Package invoker knows the user on whose behalf a capture is taken, and writes files
// with that user's rights alone.
package invoker
