package activity

import (
	"testing"

	"ccagent/eventlog"
)

func TestSparks(t *testing.T) {
	for _, c := range []struct {
		sparks       eventlog.Sparks
		line, advice string
	}{
		{},
		{eventlog.Sparks{Created: 50, Converted: 10, Fizzled: 40}, "50 sparks made, 20.0% converted, 80.0% fizzled", ""},
		{eventlog.Sparks{Created: 900, Dud: 100, Converted: 900}, "1 000 sparks made, 90.0% converted, 10.0% dud", ""},
		{
			eventlog.Sparks{Created: 500, Overflowed: 500, Converted: 100, Collected: 400}, "1 000 sparks made, 10.0% converted, 40.0% collected, 50.0% overflowed",
			"50.0% found their pool full (4096 for each capability): make fewer and larger sparks, by chunks; 40.0% were of results that nothing needed: keep what is sparked, and use it (rpar's result, not its argument)",
		},
	} {
		if line, advice := Sparks(&c.sparks); line != c.line || advice != c.advice {
			t.Errorf("of %+v: %q, %q", c.sparks, line, advice)
		}
	}
}
