package text_test

import (
	"strings"
	"testing"

	"ccagent/ui/printer"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// A cause is printed once, whatever it keeps out and however often the log has it.
func TestCausesOnce(t *testing.T) {
	const stripped, missing = "stripped: no symbols; build it again", "no symbol table to find its code by"
	l := logtest.New()
	for range 3 {
		l.Write(1, &eventlog.Warning{Text: "the rate was lowered"})
	}
	for _, group := range []string{"gc", "threads"} {
		l.Write(2, &eventlog.RTSProbes{Group: group, Problem: missing})
	}
	for id := range uint32(2) {
		l.Write(2, &eventlog.Module{ID: 7 + id, Path: "/lib/" + []string{"libone.so", "libtwo.so"}[id]})
		l.Symbol(&eventlog.ModuleSymbols{Module: 7 + id, Problem: stripped})
	}
	l.Sample(3, 1, l.Stack(l.Unknown()))
	info := views(t, load(t, l.End()), printer.Options{File: "x", Width: 400})["info"]
	for cause, line := range map[string]string{
		"the rate was lowered": "the rate was lowered (repeated 3 times)",
		missing:                "gc, threads not available: " + missing,
		stripped:               "libone.so, libtwo.so: " + stripped,
	} {
		if strings.Count(info, cause) != 1 || !strings.Contains(info, line) {
			t.Errorf("%q is not printed once, as %q:\n%s", cause, line, info)
		}
	}
}
