package push

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pprof "github.com/google/pprof/profile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ccagent/profile/export"
)

// OTLP is OpenTelemetry's protocol over HTTP.
var OTLP = Engine{Name: "otlp", Path: otlpPath, Request: otlpRequest, Answer: otlpAnswer}

const (
	otlpPath = "/v1development/profiles"
	protobuf = "application/x-protobuf"
)

func otlpRequest(of []*Batch) (*Request, error) {
	// An export request has the same fields on the wire.
	body, err := proto.Marshal(profilesData(of))
	if err != nil {
		return nil, fmt.Errorf("encode profiles: %w", err)
	}
	return &Request{otlpPath, protobuf, body}, nil
}

// sampleAttributes names the labels of samples as attributes.
var sampleAttributes = map[string]string{
	export.LabelThread: "thread.name", export.LabelCategory: "ccagent.category", export.LabelCentres: "ccagent.cost_centre_stack",
}

// dictionary interns what profiles refer to by number. Number 0 of each table is the zero value.
type dictionary struct {
	out        *otlp.ProfilesDictionary
	strings    map[string]int32
	attributes map[[2]string]int32
	stacks     map[string]int32
}

func newDictionary() *dictionary {
	return &dictionary{
		out: &otlp.ProfilesDictionary{
			MappingTable: []*otlp.Mapping{{}}, LocationTable: []*otlp.Location{{}}, FunctionTable: []*otlp.Function{{}},
			LinkTable: []*otlp.Link{{}}, StringTable: []string{""}, AttributeTable: []*otlp.KeyValueAndUnit{{}}, StackTable: []*otlp.Stack{{}},
		},
		strings: map[string]int32{"": 0}, attributes: map[[2]string]int32{}, stacks: map[string]int32{"": 0},
	}
}

func (d *dictionary) string(s string) int32 {
	i, ok := d.strings[s]
	if !ok {
		i = int32(len(d.out.StringTable))
		d.strings[s], d.out.StringTable = i, append(d.out.StringTable, valid(s))
	}
	return i
}

// valid makes a string what protobuf's strings have to be.
func valid(s string) string { return strings.ToValidUTF8(s, "�") }

func (d *dictionary) attribute(key, value string) int32 {
	k := [2]string{key, value}
	i, ok := d.attributes[k]
	if !ok {
		i = int32(len(d.out.AttributeTable))
		d.attributes[k] = i
		d.out.AttributeTable = append(d.out.AttributeTable, &otlp.KeyValueAndUnit{KeyStrindex: d.string(key), Value: anyValue(key, value)})
	}
	return i
}

func (d *dictionary) stack(locations []int32) int32 {
	var key []byte
	for _, l := range locations {
		key = protowire.AppendVarint(key, uint64(l))
	}
	i, ok := d.stacks[string(key)]
	if !ok {
		i = int32(len(d.out.StackTable))
		d.stacks[string(key)] = i
		d.out.StackTable = append(d.out.StackTable, &otlp.Stack{LocationIndices: locations})
	}
	return i
}

// anyValue is a value of the type that the conventions give the attribute.
func anyValue(key, value string) *common.AnyValue {
	if key == "process.pid" {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}}
		}
	}
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(value)}}
}

// profilesData has a resource for each batch. What their profiles refer to by number is stored once for all.
func profilesData(of []*Batch) *otlp.ProfilesData {
	d := newDictionary()
	out := &otlp.ProfilesData{Dictionary: d.out}
	for _, b := range of {
		out.ResourceProfiles = append(out.ResourceProfiles, d.resource(b))
	}
	return out
}

func (d *dictionary) resource(b *Batch) *otlp.ResourceProfiles {
	res := &resource.Resource{}
	for _, l := range b.Labels {
		res.Attributes = append(res.Attributes, &common.KeyValue{Key: valid(l.Key), Value: anyValue(l.Key, l.Value)})
	}
	scope := &otlp.ScopeProfiles{Scope: &common.InstrumentationScope{Name: "ccagent"}}
	for _, p := range b.Profiles {
		scope.Profiles = append(scope.Profiles, d.profile(p, b.PID))
	}
	return &otlp.ResourceProfiles{Resource: res, ScopeProfiles: []*otlp.ScopeProfiles{scope}}
}

// profile adds a profile of one event.
func (d *dictionary) profile(p *pprof.Profile, pid uint32) *otlp.Profile {
	mappings, functions, locations := make(map[*pprof.Mapping]int32), make(map[*pprof.Function]int32), make(map[*pprof.Location]int32)
	for _, m := range p.Mapping {
		mappings[m] = int32(len(d.out.MappingTable))
		to := &otlp.Mapping{MemoryStart: m.Start, MemoryLimit: m.Limit, FileOffset: m.Offset, FilenameStrindex: d.string(m.File)}
		if m.BuildID != "" {
			to.AttributeIndices = []int32{d.attribute("process.executable.build_id.gnu", m.BuildID)}
		}
		d.out.MappingTable = append(d.out.MappingTable, to)
	}
	for _, f := range p.Function {
		functions[f] = int32(len(d.out.FunctionTable))
		d.out.FunctionTable = append(d.out.FunctionTable, &otlp.Function{
			NameStrindex: d.string(f.Name), SystemNameStrindex: d.string(f.SystemName), FilenameStrindex: d.string(f.Filename), StartLine: f.StartLine})
	}
	for _, l := range p.Location {
		locations[l] = int32(len(d.out.LocationTable))
		to := &otlp.Location{MappingIndex: mappings[l.Mapping], Address: l.Address}
		for _, line := range l.Line {
			to.Lines = append(to.Lines, &otlp.Line{FunctionIndex: functions[line.Function], Line: line.Line})
		}
		d.out.LocationTable = append(d.out.LocationTable, to)
	}
	kind := p.SampleType[0]
	out := &otlp.Profile{
		SampleType:   &otlp.ValueType{TypeStrindex: d.string(kind.Type), UnitStrindex: d.string(kind.Unit)},
		TimeUnixNano: uint64(p.TimeNanos), DurationNano: uint64(p.DurationNanos),
	}
	for _, s := range p.Sample {
		at := make([]int32, len(s.Location))
		for i, l := range s.Location {
			at[i] = locations[l]
		}
		to := &otlp.Sample{StackIndex: d.stack(at), Values: s.Value}
		for label, values := range s.Label {
			to.AttributeIndices = append(to.AttributeIndices, d.attribute(sampleAttributes[label], values[0]))
		}
		if of := s.NumLabel[export.LabelPID]; len(of) == 1 && of[0] != int64(pid) {
			to.AttributeIndices = append(to.AttributeIndices, d.attribute("process.pid", strconv.FormatInt(of[0], 10)))
		}
		slices.Sort(to.AttributeIndices)
		out.Samples = append(out.Samples, to)
	}
	return out
}

// otlpAnswer reads an ExportProfilesServiceResponse.
func otlpAnswer(contentType string, body []byte) (rejected int64, why string, err error) {
	if len(body) > 0 && !strings.HasPrefix(contentType, protobuf) {
		return 0, "", fmt.Errorf("an answer of type %q: %w", contentType, errNoEngine)
	}
	err = fields(body, func(n protowire.Number, _ uint64, partial []byte) error {
		if n != 1 {
			return nil
		}
		return fields(partial, func(n protowire.Number, v uint64, text []byte) error {
			switch n {
			case 1:
				rejected = int64(v)
			case 2:
				why = string(text)
			}
			return nil
		})
	})
	return rejected, why, err
}

// fields calls f for the varints and the byte strings of a message.
func fields(b []byte, f func(n protowire.Number, v uint64, text []byte) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("no protobuf: %w", errNoEngine)
		}
		b = b[n:]
		var v uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return fmt.Errorf("no protobuf: %w", errNoEngine)
		}
		b = b[n:]
		if err := f(num, v, text); err != nil {
			return err
		}
	}
	return nil
}
