package footprint

import (
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// The advice is about the part that matters, with the flags that change it.
func TestAdvice(t *testing.T) {
	const mb = 1 << 20
	part := func(k eventlog.FootprintKind, bytes uint64) eventlog.FootprintPart {
		return eventlog.FootprintPart{Kind: k, Bytes: bytes, Mapped: bytes}
	}
	live := part(eventlog.FootprintLive, 40*mb)
	for _, c := range []struct {
		name  string
		parts []eventlog.FootprintPart
		pins  []eventlog.FootprintPin
		want  eventlog.FootprintKind
		flags []string
		words string // that the sentence has
	}{
		{"live", []eventlog.FootprintPart{live, part(eventlog.FootprintFree, 10*mb)}, nil, eventlog.FootprintLive, nil, "--graph"},
		{"a copying collector's", []eventlog.FootprintPart{live, part(eventlog.FootprintFree, 40*mb)}, nil, eventlog.FootprintFree, []string{"-F", "-c", "--nonmoving-gc"}, "40.0 MiB of live data"},
		{"to be given back", []eventlog.FootprintPart{live, part(eventlog.FootprintFree, 400*mb)}, nil, eventlog.FootprintFree, []string{"-Fd"}, "far more than"},
		{"given back", []eventlog.FootprintPart{live, part(eventlog.FootprintGivenBack, 200*mb)}, nil, eventlog.FootprintGivenBack, []string{"--disable-delayed-os-memory-return"}, "no leak"},
		{"pinned", []eventlog.FootprintPart{live, part(eventlog.FootprintFreeBlocks, 60*mb)},
			[]eventlog.FootprintPin{{Kind: eventlog.FootprintPinned, Megablocks: 60, Free: 60 * mb, Held: 60 << 12}}, eventlog.FootprintFreeBlocks, nil, "60 of them 240 KiB of blocks of pinned"},
		{"large pins", []eventlog.FootprintPart{live, part(eventlog.FootprintFreeBlocks, 60*mb), part(eventlog.FootprintStacks, 50*mb)},
			[]eventlog.FootprintPin{{Kind: eventlog.FootprintStacks, Megablocks: 60, Free: 60 * mb, Held: 50 * mb}}, eventlog.FootprintStacks, []string{"-K"}, "stacks of Haskell threads"},
		{"moved", []eventlog.FootprintPart{live, part(eventlog.FootprintFreeBlocks, 60*mb)},
			[]eventlog.FootprintPin{{Kind: eventlog.FootprintLive, Moved: true, Megablocks: 90, Free: 60 * mb, Held: 40 * mb}}, eventlog.FootprintFreeBlocks, []string{"-F", "-c"}, "compacts"},
		{"nursery", []eventlog.FootprintPart{live, part(eventlog.FootprintNursery, 64*mb)}, nil, eventlog.FootprintNursery, []string{"-A"}, "40.0 MiB are live"},
		{"C", []eventlog.FootprintPart{live, part(eventlog.FootprintMalloc, 30*mb), part(eventlog.FootprintAnonymous, 30*mb)}, nil, eventlog.FootprintAnonymous, nil, "malloc"},
		{"nothing", nil, nil, eventlog.FootprintLive, nil, ""},
	} {
		f := &columns.Footprint{Parts: c.parts, Pins: c.pins}
		for _, p := range c.parts {
			f.Resident += p.Bytes
		}
		f.Resident += 5
		a := Of(f, nil)
		if a.Difference != 5 || a.Advice.Kind != c.want || !slices.Equal(a.Advice.Flags, c.flags) || !strings.Contains(a.Advice.Text, c.words) {
			t.Errorf("%s: %d left; %+v", c.name, a.Difference, a.Advice)
		}
	}
	over := Of(&columns.Footprint{Footprint: eventlog.Footprint{Resident: mb}, Parts: []eventlog.FootprintPart{live}}, nil)
	if over.Difference != -39*mb || over.Accounted != 40*mb {
		t.Errorf("parts that have more than there is: %+v", over)
	}
	f := &columns.Footprint{Footprint: eventlog.Footprint{Resident: 50 * mb}, Parts: []eventlog.FootprintPart{live}}
	for _, rest := range []bool{false, true} {
		text := Of(f, &columns.HeapGraph{HeapGraph: eventlog.HeapGraph{AtRest: rest}}).Advice.Text
		if strings.Contains(text, "--graph PID") || !strings.Contains(text, "--retained") || strings.Contains(text, "garbage included") != rest || strings.Contains(text, "live data") == rest {
			t.Errorf("of a log that has pointers, at rest %v: %s", rest, text)
		}
	}
}
