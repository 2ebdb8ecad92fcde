package sink

import (
	"fmt"
	"syscall"
)

// FileLost returns an error if the log was deleted or truncated while it was written.
func (s *Sink) FileLost() error { return s.fileLost }

// checkFile checks whether the log was deleted or truncated, and warns once. The capture goes
// on, since the program does, but it has failed.
func (s *Sink) checkFile() error {
	if s.fileLost != nil {
		return nil
	}
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("examine log: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && st.Nlink == 0:
		s.fileLost = fmt.Errorf("%s was deleted during the capture: nothing of it will be left", s.file.Path)
	case info.Size() < s.log.Size():
		s.fileLost = fmt.Errorf("%s was truncated during the capture: what it held before is lost", s.file.Path)
	default:
		return nil
	}
	s.Warn(s.fileLost.Error())
	return nil
}
