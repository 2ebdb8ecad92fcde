package perf

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf/btf"
)

// typesOf makes type information like a kernel's.
func typesOf(t *testing.T, types ...btf.Type) *btf.Spec {
	t.Helper()
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// The tick is found in a kernel's types, and a kernel that lacks some is refused with what helps.
func TestFindTick(t *testing.T) {
	word := &btf.Int{Name: "long", Size: 8}
	traced := &btf.Typedef{Name: "btf_trace_hrtimer_expire_exit", Type: word}
	sched := &btf.Struct{Name: "tick_sched", Size: 16, Members: []btf.Member{
		{Name: "flags", Type: word}, {Name: "sched_timer", Type: word, Offset: 64},
	}}
	section := &btf.Datasec{Name: ".data..percpu", Size: 4096}
	for name, at := range map[string]uint32{"hrtimer_bases": 1024, "tick_cpu_sched": 2048, "__irq_regs": 512} {
		of := btf.Type(word)
		if name == "tick_cpu_sched" {
			of = sched
		}
		section.Vars = append(section.Vars, btf.VarSecinfo{Type: &btf.Var{Name: name, Type: of}, Offset: at, Size: 8})
	}
	whole := typesOf(t, traced, sched, section)
	const fine = time.Nanosecond
	for hz, share := range map[time.Duration]uint32{100: 1, 250: 1, 300: 1, 1000: 4} {
		tick, err := findTick(whole, fine, time.Second/hz)
		if err != nil || tick.Timer != 2048+8-1024 || tick.Regs != 512-1024 || tick.Period != time.Second/hz || tick.Share != share {
			t.Errorf("%d Hz: %+v, %v", hz, tick, err)
		}
	}
	for what, find := range map[string]func() error{
		"coarse timers":         func() error { _, err := findTick(whole, 4*time.Millisecond, 4*time.Millisecond); return err },
		"no tracepoint":         func() error { _, err := findTick(typesOf(t, sched, section), fine, 4*time.Millisecond); return err },
		"no per-CPU variables":  func() error { _, err := findTick(typesOf(t, traced, sched), fine, 4*time.Millisecond); return err },
		"no type of the tick's": func() error { _, err := findTick(typesOf(t, traced), fine, 4*time.Millisecond); return err },
	} {
		var why *UnavailableError
		if err := find(); !errors.As(err, &why) || why.Event != TickEvent || why.Reason == "" || why.Help == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
