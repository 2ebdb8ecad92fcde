package sink

// FileLost returns an error if the log was deleted or truncated while it was written.
func (s *Sink) FileLost() error { return s.fileLost }

// checkFile checks whether the log was deleted or truncated, and warns once. The capture goes
// on, since the program does, but it has failed.
func (s *Sink) checkFile() {
	if s.fileLost != nil {
		return
	}
	if s.beside != nil {
		s.fileLost = s.beside.wasLost()
	} else {
		s.fileLost = lostOf(s.file, s.log.Size())
	}
	if s.fileLost != nil {
		s.Warn(s.fileLost.Error())
	}
}
