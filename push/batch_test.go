package push

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// secretive is a log whose arguments and source text are secret.
func secretive(t *testing.T) *profile.Profile {
	t.Helper()
	log := logtest.Changed(logtest.NBody().End(), func(rec *eventlog.Record) {
		switch ev := rec.Event.(type) {
		case *eventlog.Capture:
			ev.Args = []string{"nbody", "--password=hidden"}
			ev.Labels = []eventlog.Label{{Key: "service.name", Value: "planets"}, {Key: "host.name", Value: "one"}}
		case *eventlog.FileText:
			ev.Text = bytes.Repeat([]byte("hidden"), len(ev.Text)/6+1)[:len(ev.Text)]
		}
	})
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unpacked is a request's body with every gzip stream in it, and every such stream in JSON.
func unpacked(t *testing.T, r *Request) string {
	t.Helper()
	all := string(r.Body)
	var w parcaWrite
	if json.Unmarshal(r.Body, &w) == nil {
		for _, s := range w.Series {
			all += string(s.Samples[0].RawProfile)
		}
	}
	for rest := []byte(all); ; {
		at := bytes.Index(rest, []byte{0x1f, 0x8b, 8})
		if at < 0 {
			return all
		}
		rest = rest[at:]
		z, err := gzip.NewReader(bytes.NewReader(rest))
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
		rest = rest[3:]
	}
}

// Arguments are sent only where the rules say so, and source text never; labels are, by OpenTelemetry's
// names.
func TestWhatIsSent(t *testing.T) {
	p := secretive(t)
	for _, e := range Engines {
		for _, rules := range []Rules{{}, {Arguments: true}} {
			b, err := Of(p, wholeLog, rules)
			if err != nil {
				t.Fatal(err)
			}
			r, err := e.Request([]*Batch{b})
			if err != nil {
				t.Fatal(err)
			}
			text := unpacked(t, r)
			if strings.Contains(text, "hidden") != rules.Arguments || strings.Contains(text, "hiddenhidden") {
				t.Errorf("%s, %+v: what is hidden is sent, or what is asked for is not", e.Name, rules)
			}
			for _, want := range []string{"planets", "Physics.step", "process.executable.path", "abcd"} {
				if e.Name != "otlp" {
					want = strings.ReplaceAll(want, "process.executable.path", "process_executable_path")
				}
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q", e.Name, want)
				}
			}
		}
	}
}

// figures are sums by function of an OTLP profile: of leaf locations, and of whole stacks.
func figures(d *otlp.ProfilesDictionary, p *otlp.Profile) (share, inclusive map[string]int64, total int64) {
	share, inclusive = make(map[string]int64), make(map[string]int64)
	for _, s := range p.Samples {
		total += s.Values[0]
		seen := make(map[string]bool)
		for i, l := range d.StackTable[s.StackIndex].LocationIndices {
			for _, line := range d.LocationTable[l].Lines {
				name := d.StringTable[d.FunctionTable[line.FunctionIndex].NameStrindex]
				if i == 0 {
					share[name] += s.Values[0]
				}
				if !seen[name] {
					seen[name] = true
					inclusive[name] += s.Values[0]
				}
			}
		}
	}
	return share, inclusive, total
}

// A request of several logs has of each what a request of it alone has.
func TestRequestOfSeveralLogs(t *testing.T) {
	one, err := Of(secretive(t), wholeLog, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	two := batch(t)
	two.Service = "two"
	both := []*Batch{one, two, one}
	for _, e := range Engines {
		joint, err := e.Request(both)
		if err != nil {
			t.Fatal(err)
		}
		var alone []*Request
		for _, b := range both {
			r, err := e.Request([]*Batch{b})
			if err != nil {
				t.Fatal(err)
			}
			alone = append(alone, r)
		}
		if joint.Path != alone[0].Path || joint.ContentType != alone[0].ContentType {
			t.Errorf("%s: %s, %s", e.Name, joint.Path, joint.ContentType)
		}
		switch e.Name {
		case OTLP.Name:
			var all otlp.ProfilesData
			if err := proto.Unmarshal(joint.Body, &all); err != nil {
				t.Fatal(err)
			}
			if len(all.ResourceProfiles) != len(both) {
				t.Fatalf("%d resources", len(all.ResourceProfiles))
			}
			for i, r := range alone {
				var of otlp.ProfilesData
				if err := proto.Unmarshal(r.Body, &of); err != nil {
					t.Fatal(err)
				}
				got, want := all.ResourceProfiles[i], of.ResourceProfiles[0]
				if got, want := len(got.ScopeProfiles[0].Profiles), len(want.ScopeProfiles[0].Profiles); got != want || want == 0 {
					t.Fatalf("log %d: %d profiles, want %d", i, got, want)
				}
				if !proto.Equal(want.Resource, got.Resource) {
					t.Errorf("log %d is of %v, want %v", i, got.Resource, want.Resource)
				}
				for j, p := range want.ScopeProfiles[0].Profiles {
					share, inclusive, total := figures(of.Dictionary, p)
					share2, inclusive2, total2 := figures(all.Dictionary, got.ScopeProfiles[0].Profiles[j])
					if total != total2 || !cmp.Equal(share, share2) || !cmp.Equal(inclusive, inclusive2) {
						t.Errorf("log %d, event %d: %d, want %d: %s%s", i, j, total2, total, cmp.Diff(share, share2), cmp.Diff(inclusive, inclusive2))
					}
				}
			}
		case Pyroscope.Name: // series are a repeated field, so that messages can be joined
			var want []byte
			for _, r := range alone {
				want = append(want, r.Body...)
			}
			if !bytes.Equal(joint.Body, want) {
				t.Errorf("%s: the request is not what those of each are", e.Name)
			}
		case Parca.Name:
			var got, want parcaWrite
			for _, r := range alone {
				var w parcaWrite
				if err := json.Unmarshal(r.Body, &w); err != nil {
					t.Fatal(err)
				}
				want.Series = append(want.Series, w.Series...)
			}
			if err := json.Unmarshal(joint.Body, &got); err != nil || !cmp.Equal(got, want) {
				t.Errorf("%s: %v %s", e.Name, err, cmp.Diff(want, got))
			}
		}
	}
}

// What OTLP has of each binding is what hot shows of it, also of a range.
func TestOTLPHasWhatHotShows(t *testing.T) {
	p := secretive(t)
	for _, r := range []profile.Range{{}, {From: 20e6, To: 60e6}} {
		b, err := Of(p, r, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		req, err := otlpRequest([]*Batch{b})
		if err != nil {
			t.Fatal(err)
		}
		var data otlp.ProfilesData
		if err := proto.Unmarshal(req.Body, &data); err != nil {
			t.Fatal(err)
		}
		got := data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0]
		d := data.Dictionary
		if kind := d.StringTable[got.SampleType.TypeStrindex] + "/" + d.StringTable[got.SampleType.UnitStrindex]; kind != "cpu/nanoseconds" || got.Period != 0 {
			t.Errorf("%s, period %d", kind, got.Period)
		}
		if got.TimeUnixNano != p.Capture.StartUnixNs+r.From {
			t.Errorf("begins at %d", got.TimeUnixNano)
		}
		share, inclusive, total := figures(d, got)
		s := p.Select(profile.Filter{Range: r})
		if uint64(total) != s.Total {
			t.Errorf("a total of %d, want %d", total, s.Total)
		}
		sources := 0
		for _, row := range s.Hot(profile.LevelBinding).Rows {
			if row.Element.Kind != profile.KindSource {
				continue
			}
			sources++
			if name := row.Element.Name; uint64(share[name]) != row.ShareWeight || uint64(inclusive[name]) != row.InclusiveWeight {
				t.Errorf("%s: %d, %d with callees; hot has %d, %d", name, share[name], inclusive[name], row.ShareWeight, row.InclusiveWeight)
			}
		}
		if sources == 0 {
			t.Error("hot has no bindings")
		}
	}
}

// Cost-centre stacks and threads are attributes of samples.
func TestAttributes(t *testing.T) {
	l := logtest.NewExact()
	l.CentreStack(1, 0, "MAIN")
	l.CentreStack(2, 1, "f")
	l.CentreSample(5, 0, 2)
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Of(p, wholeLog, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	data := profilesData([]*Batch{b})
	got := make(map[string]string)
	for _, i := range data.ResourceProfiles[0].ScopeProfiles[0].Profiles[0].Samples[0].AttributeIndices {
		a := data.Dictionary.AttributeTable[i]
		got[data.Dictionary.StringTable[a.KeyStrindex]] = a.Value.GetStringValue()
	}
	if !strings.HasSuffix(got["ccagent.cost_centre_stack"], "f") || !strings.HasPrefix(got["ccagent.cost_centre_stack"], "MAIN;") || got["thread.name"] == "" || got["ccagent.category"] == "" {
		t.Errorf("%v", got)
	}
}
