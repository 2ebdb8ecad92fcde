package threads

import (
	"errors"
	"testing"

	"ccagent/internal/ghc"
)

func asleep() bool { return true }

func TestSurvey(t *testing.T) {
	p := newProgram()
	r := p.reader()
	var s Survey
	seen := map[uint64]ghc.WhyBlocked{}
	err := r.Survey(&s, p.generation, asleep, func(th *Thread) {
		if !s.Look() {
			t.Fatalf("thread %d cannot be read", th.ID)
		}
		stack, stood := s.Stack()
		if !stood || stack.Stop != StopRoot || stack.Frames[0].Kind != ghc.RetSmall {
			t.Errorf("thread %d: stood %v, stack %+v", th.ID, stood, stack)
		}
		seen[th.ID] = th.Why
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 2 || seen[7] != ghc.BlockedOnMVar || seen[8] != ghc.BlockedOnBlackHole {
		t.Errorf("it has seen %v", seen)
	}
	if sure, err := s.Confirm(asleep); !sure || err != nil {
		t.Errorf("confirmed: %v, %v", sure, err)
	}
	p.word(p.generation+ghc.GenerationCollections, 1)
	if _, err := s.Confirm(asleep); !errors.Is(err, ErrMoving) {
		t.Errorf("after a collection: %v", err)
	}
}

// Where the capabilities are held by OS threads in C, a collection may be running.
func TestSurveyOfCapabilitiesInC(t *testing.T) {
	for _, slept := range []bool{false, true} {
		p := newProgram()
		r := p.reader()
		var s Survey
		idle := func() bool { return slept }
		var capability uint64
		err := r.Survey(&s, p.generation, idle, func(*Thread) {
			capability = s.caps[0]
			p.word(capability+ghc.BaseOfCapability+ghc.BaseRunningTask, heapAt)
		})
		if err != nil {
			t.Fatal(err)
		}
		if sure, err := s.Confirm(idle); sure != slept || err != nil {
			t.Errorf("OS threads sleep: %v; confirmed: %v, %v", slept, sure, err)
		}
		p.word(capability+ghc.BaseOfCapability+ghc.BaseRunningTask, 0)
		if sure, err := s.Confirm(idle); !sure || err != nil {
			t.Errorf("an idle capability: confirmed %v, %v", sure, err)
		}
	}
}

// A thread that runs on between the look at it and that at its stack has no stack.
func TestSurveyOfThreadsThatMove(t *testing.T) {
	for name, move := range map[string]func(p *program){
		"it runs":              func(p *program) { p.why(0, ghc.NotBlocked, 0) },
		"it waits for another": func(p *program) { p.why(0, ghc.BlockedOnMVar, p.hole) },
		"its stack has grown": func(p *program) {
			at, err := p.reader().word(p.threads[0] + uint64(p.l.TSOStackObj))
			if err != nil {
				t.Fatal(err)
			}
			sp, err := p.reader().word(at + uint64(p.l.StackSp))
			if err != nil {
				t.Fatal(err)
			}
			p.word(at+uint64(p.l.StackSp), sp-8)
		},
	} {
		p := newProgram()
		r := p.reader()
		var s Survey
		err := r.Survey(&s, p.generation, asleep, func(th *Thread) {
			if th.Address != p.threads[0] {
				return
			}
			was := th.Why
			s.Look()
			move(p)
			if _, stood := s.Stack(); stood || th.Why != was {
				t.Errorf("%s: stood %v, it waits for %d, did for %d", name, stood, th.Why, was)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A thread that waits for a black hole has the frame that stands on the thunk's update frame, on the stack of the thread that evaluates it.
func TestSurveyOfBlackHoles(t *testing.T) {
	const found = true
	for name, c := range map[string]struct {
		stack func(p *program, ret, update, stop uint64) []uint64
		value bool // it has its value
		want  bool
	}{
		"its evaluation": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{ret, 1, ret, 2, update, p.hole, ret, 3, stop}
		}, false, found},
		"another thunk's, and below it its own": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{ret, 1, update, p.mvar, ret, 2, update, p.hole, stop}
		}, false, found},
		"another thunk's": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{ret, 1, update, p.mvar, stop}
		}, false, !found},
		"nothing but another thunk's on it": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{ret, 1, update, p.mvar, update, p.hole, stop}
		}, false, !found},
		"nothing on it": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{update, p.hole, stop}
		}, false, !found},
		"what is no frame": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{ret, 1, 77, ret, 2, update, p.hole, stop}
		}, false, !found},
		"a value meanwhile": {func(p *program, ret, update, stop uint64) []uint64 {
			return []uint64{ret, 1, update, p.hole, stop}
		}, true, !found},
	} {
		p := newProgram()
		ret, update, stop := p.info(ghc.RetSmall, 1), p.info(ghc.UpdateFrame, 1), p.info(ghc.StopFrame, 0)
		stack, err := p.reader().word(p.threads[0] + uint64(p.l.TSOStackObj))
		if err != nil {
			t.Fatal(err)
		}
		info, err := p.reader().word(stack)
		if err != nil {
			t.Fatal(err)
		}
		frames := c.stack(p, ret, update, stop)
		stack = p.object(append([]uint64{info, uint64(len(frames)) + 2, 0, 0, 0}, frames...)...)
		p.word(stack+uint64(p.l.StackSp), stack+uint64(p.l.StackFirst)+16)
		p.word(p.threads[0]+uint64(p.l.TSOStackObj), stack)
		r := p.reader()
		var s Survey
		err = r.Survey(&s, p.generation, asleep, func(th *Thread) {
			s.Look()
			if c.value {
				p.word(p.hole+8, p.end|1)
			}
			on, ok := s.Evaluated()
			want := c.want && th.Address == p.threads[1]
			if ok != want || ok && on != [2]Frame{{ret, ghc.RetSmall}, {update, ghc.UpdateFrame}} {
				t.Errorf("%s: thread %d: %v, %+v, want %v", name, th.ID, ok, on, want)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
