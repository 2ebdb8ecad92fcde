package eventlog

// scan is the state of skipping damaged bytes.
type scan struct {
	on     bool
	far    bool // no events that fit closely are near
	from   int64
	reason string
}

// resync skips damaged bytes, at least skip of them, up to the next place where reading can
// continue, and reports them.
func (r *Reader) resync(skip int, reason string) {
	r.scan = scan{on: true, from: r.in.offset(), reason: reason}
	r.in.pos += skip
	r.pass()
}

// pass skips to the end of the damage, or to the end of what has arrived of the log.
func (r *Reader) pass() {
	s := &r.scan
	if !s.far {
		n := r.judge.find(window)
		if r.in.starved {
			return
		}
		if n >= 0 {
			r.in.pos += n
		} else {
			s.far = true
		}
	}
	if s.far {
		for r.in.need(window+lookahead) > 0 && !r.judge.believable(r.in.pos, farFit, chain) && !r.judge.atEndMarker() {
			if r.in.starved {
				return
			}
			r.in.pos++
		}
		if r.in.end == r.in.pos && r.in.wait() {
			return
		}
	}
	s.on = false
	r.report(s.from, r.in.offset()-s.from, s.reason)
}
