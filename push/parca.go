package push

import (
	"encoding/json"
	"fmt"
)

const parcaPath = "/profiles/writeraw"

// Parca is its call WriteRaw, as JSON.
var Parca = Engine{Name: "parca", Path: parcaPath, Request: parcaRequest, Answer: parcaAnswer}

type parcaLabel struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type parcaSeries struct {
	Labels struct {
		Labels []parcaLabel `json:"labels"`
	} `json:"labels"`
	Samples []parcaSample `json:"samples"`
}

type parcaSample struct {
	RawProfile []byte `json:"rawProfile"`
}

type parcaWrite struct {
	Series []parcaSeries `json:"series"`
	// Normalized is set where addresses are the executable's own; ours are a process's.
	Normalized bool `json:"normalized"`
}

func parcaRequest(of []*Batch) (*Request, error) {
	var w parcaWrite
	for _, b := range of {
		for _, p := range b.Profiles {
			raw, err := encoded(p)
			if err != nil {
				return nil, err
			}
			s := parcaSeries{Samples: []parcaSample{{raw}}}
			for _, l := range seriesLabels(b, p) {
				s.Labels.Labels = append(s.Labels.Labels, parcaLabel{l[0], valid(l[1])})
			}
			w.Series = append(w.Series, s)
		}
	}
	body, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("encode profiles: %w", err)
	}
	return &Request{parcaPath, "application/json", body}, nil
}

func parcaAnswer(_ string, body []byte) (int64, string, error) {
	var any map[string]any
	if err := json.Unmarshal(body, &any); err != nil {
		return 0, "", fmt.Errorf("an answer that is no JSON: %w", errNoEngine)
	}
	return 0, "", nil
}
