package columns

import "bytes"

// TotalsOf reads totals as OpenTotals does, with pieces of the given size; 0 for none.
// It tells whether the log was taken in pieces.
func TotalsOf(log []byte, each int64) (l *Log, inPieces bool, err error) {
	b := newTotalsBuilder()
	if each > 0 && b.takePieces(bytes.NewReader(log), int64(len(log)), each, nil) {
		return b.finish(), true, nil
	}
	l, err = open(&countingReader{r: bytes.NewReader(log)}, newTotalsBuilder())
	return l, false, err
}
