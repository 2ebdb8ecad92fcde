package worker

import (
	"crypto/sha256"
	"fmt"
	"os"
	"syscall"

	"ccagent/symbolize/sources"
)

// Permitted remembers which source files the modules of earlier jobs name, for which all strings of a
// module's files are looked through. It is used by one goroutine at a time.
type Permitted struct {
	of map[permission]bool
}

// permission is a hash of a source file's name, and of a module and its files as they were looked through.
type permission [sha256.Size]byte

// contents is the identity of a file, as long as it is not changed.
type contents struct {
	dev, inode uint64
	size       int64
	modified   syscall.Timespec
	changed    syscall.Timespec
}

// maxPermitted bounds what is remembered; all is forgotten then.
const maxPermitted = 1 << 14

// lookup returns what is known of a source file of a module, and where to remember it. It is nil for files
// without an identity.
func (p *Permitted) lookup(m *ModuleFile, ref *sources.Ref) (known, is bool, remember func(bool)) {
	if p == nil {
		return false, false, nil
	}
	file, ok := contentsOf(m.File)
	debug, debugOK := contentsOf(m.Debug)
	if !ok || m.Debug != nil && !debugOK {
		return false, false, nil
	}
	k := permission(sha256.Sum256(fmt.Appendf(nil, "%v %v %q %q %q", file, debug, m.Path, ref.Dir, ref.Name)))
	is, known = p.of[k]
	return known, is, func(is bool) {
		if len(p.of) >= maxPermitted || p.of == nil {
			p.of = map[permission]bool{}
		}
		p.of[k] = is
	}
}

func contentsOf(f *os.File) (c contents, ok bool) {
	if f == nil {
		return c, false
	}
	info, err := f.Stat()
	if err != nil {
		return c, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return c, false
	}
	return contents{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}, true
}
