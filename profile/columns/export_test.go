package columns

import "bytes"

// TotalsOf reads totals as OpenTotals does, with sections of the given size; 0 for none.
// It reports whether the log was read in sections.
func TotalsOf(log []byte, each int64) (l *Log, inSections bool, err error) {
	b := newTotalsBuilder()
	if each > 0 && b.takeSections(bytes.NewReader(log), int64(len(log)), each, nil) {
		return b.finish(), true, nil
	}
	l, err = open(&countingReader{r: bytes.NewReader(log)}, newTotalsBuilder())
	return l, false, err
}
