package hold

import (
	"bytes"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnOwnThread calls f on an OS thread that ends with the goroutine, which must be new and return with it. All of ptrace's requests
// must come from one thread, and when it ends the kernel lets go of what it still traces. It has no children: their ends would be
// taken for news of what is traced, and a child may be one that dies with the thread that started it.
func OnOwnThread(f func()) {
	runtime.LockOSThread()
	// The main thread does not end: Go parks it.
	if unix.Gettid() != unix.Getpid() && !hasChildren() {
		f()
		return
	}
	done := make(chan struct{})
	go func() { // on another thread, since this one is locked
		defer close(done)
		OnOwnThread(f)
	}()
	<-done
	runtime.UnlockOSThread()
}

// hasChildren reports whether this OS thread has started processes that are not waited for yet. It is false on kernels
// that were built without CONFIG_PROC_CHILDREN, where that cannot be known.
func hasChildren() bool {
	children, err := os.ReadFile("/proc/thread-self/children")
	return err == nil && len(bytes.TrimSpace(children)) > 0
}
