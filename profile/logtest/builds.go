package logtest

import (
	"math/rand/v2"

	"ccagent/eventlog"
)

// Run writes the log of one run of a program that exists in two builds. Runs vary by
// a few percent; the number seeds the variation.
//
// The old build costs 100 ms in Work.heavy, 40 in Work.light, 50 in Old.gone and 30 in
// the garbage collector. In the new build Work.heavy costs 200 ms, its file has moved
// from src to lib and its code three lines down, and New.added replaces Old.gone.
func Run(number uint64, changed bool) *Log {
	l := New()
	path, shift, heavyMs := "src/Work.hs", uint32(0), 100
	if changed {
		path, shift, heavyMs = "lib/Work.hs", 3, 200
	}
	rng := rand.New(rand.NewPCG(number, 5))
	work := l.File(path, "")
	main := l.File("app/Main.hs", "")
	bMain := l.Binding("main", "Main", "main", 0)
	heavy := l.Binding("work-1.0", "Work", "heavy", 0)
	light := l.Binding("work-1.0", "Work", "light", 0)
	gc := l.Function("evacuate", eventlog.CategoryGC)
	inMain := l.Block(bMain, l.Span(main, 3, 1, 9, 20, bMain))
	heavySpan := l.Span(work, 10+shift, 1, 14+shift, 20, heavy)
	inHeavy := l.Block(heavy, l.Span(work, 12+shift, 5, 12+shift, 20, heavy), heavySpan)
	inLight := l.Block(light, l.Span(work, 20+shift, 1, 22+shift, 20, light))
	inGC := l.Code(gc, eventlog.QualityExact, eventlog.CategoryGC)
	leaves := []struct {
		ms   int
		leaf Frame
	}{{heavyMs, inHeavy}, {40, inLight}, {30, inGC}}
	name := [2]string{"Old", "gone"}
	if changed {
		name = [2]string{"New", "added"}
	}
	own := l.Binding("main", name[0], name[1], 0)
	leaves = append(leaves, struct {
		ms   int
		leaf Frame
	}{50, l.Block(own, l.Span(main, 30, 1, 31, 9, own))})
	at := uint64(0)
	for _, x := range leaves {
		node := l.Stack(inMain, x.leaf)
		for range int(float64(x.ms)*(1+0.03*rng.NormFloat64()) + 0.5) {
			at += 1e6
			l.Sample(at, 1e6, node)
		}
	}
	return l
}
