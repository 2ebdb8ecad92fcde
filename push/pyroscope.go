package push

import (
	"bytes"
	"fmt"
	"strings"

	pprof "github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"
)

const pyroscopePath = "/push.v1.PusherService/Push"

// Pyroscope is the call Push of push.v1.PusherService, in the Connect protocol: a series of labels and one
// pprof profile for each event.
var Pyroscope = Engine{Name: "pyroscope", Path: pyroscopePath, Request: pyroscopeRequest, Answer: pyroscopeAnswer}

const connectProto = "application/proto"

func pyroscopeRequest(of []*Batch) (*Request, error) {
	var body []byte
	for _, b := range of {
		for _, p := range b.Profiles {
			raw, err := encoded(p)
			if err != nil {
				return nil, err
			}
			var series []byte
			for _, l := range seriesLabels(b, p) {
				var pair []byte
				pair = appendString(pair, 1, l[0])
				pair = appendString(pair, 2, l[1])
				series = appendBytes(series, 1, pair)
			}
			body = appendBytes(body, 1, appendBytes(series, 2, appendBytes(nil, 1, raw)))
		}
	}
	return &Request{pyroscopePath, connectProto, body}, nil
}

func encoded(p *pprof.Profile) ([]byte, error) {
	var raw bytes.Buffer
	if err := p.Write(&raw); err != nil {
		return nil, fmt.Errorf("encode pprof profile: %w", err)
	}
	return raw.Bytes(), nil
}

func appendBytes(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func appendString(b []byte, n protowire.Number, s string) []byte {
	return appendBytes(b, n, []byte(valid(s)))
}

// seriesLabels are a series' labels for engines that have Prometheus's names: __name__ is the kind of
// profile, service_name what it is filed under.
func seriesLabels(b *Batch, p *pprof.Profile) [][2]string {
	kind := p.SampleType[0].Type
	switch kind {
	case "cpu":
		kind = "process_cpu"
	case "alloc_space":
		kind = "memory"
	}
	labels := [][2]string{{"__name__", labelName(kind)}, {"service_name", b.Service}}
	for _, l := range b.Labels {
		if name := labelName(l.Key); name != "service_name" {
			labels = append(labels, [2]string{name, l.Value})
		}
	}
	return labels
}

// labelName makes a name of letters, digits and underscores.
func labelName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, s)
}

func pyroscopeAnswer(contentType string, body []byte) (int64, string, error) {
	if !strings.HasPrefix(contentType, connectProto) {
		return 0, "", fmt.Errorf("an answer of type %q: %w", contentType, errNoEngine)
	}
	return 0, "", fields(body, func(protowire.Number, uint64, []byte) error { return nil })
}
