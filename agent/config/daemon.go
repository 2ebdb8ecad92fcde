package config

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"ccagent/symbolize/debuginfod"

	"github.com/goccy/go-yaml"
)

// Daemon is the part of the configuration that ccagent daemon reads.
type Daemon struct {
	// Events are sampled of each process, Frequency times a second of CPU time.
	Events    []string `yaml:"events"`
	Frequency uint64   `yaml:"frequency"`
	// MaxOverhead bounds what measuring takes, in per cent of the CPU time of all processes.
	MaxOverhead float64 `yaml:"max-overhead"`
	// ProcessOverhead bounds what probes may take of one process, in per cent of its CPU time; 0 for as
	// much as MaxOverhead.
	ProcessOverhead float64 `yaml:"process-overhead"`
	// BoostOverhead bounds what the samples of a boost may take of its process, in per cent of its CPU
	// time, beside the other two; 0 is no bound.
	BoostOverhead float64 `yaml:"boost-overhead"`
	// Heap is how often the heap of each process is counted, and HeapPause for how long it may stand for that.
	HeapText      string        `yaml:"heap"`
	HeapPauseText string        `yaml:"heap-pause"`
	Heap          time.Duration `yaml:"-"` // 0 for never
	HeapPause     time.Duration `yaml:"-"`
	// A piece of a log is closed when it is that old or that large.
	Piece Limits `yaml:"piece"`
	// Keep bounds all pieces together: the oldest are removed.
	Keep Limits `yaml:"keep"`
	// Rules choose processes: the first that matches does. Without a match a process is profiled.
	Rules []Rule `yaml:"rules"`
	// Group may use the control socket; each of its users sees their own processes.
	Group string `yaml:"group"`
	// Metrics is the address on this host at which metrics are served; empty for none.
	Metrics string `yaml:"metrics"`
	// Push lists the engines that closed pieces are sent to.
	Push []Push `yaml:"push"`
	// Debuginfod are the servers that are asked for debug files of stripped programs; none if empty.
	Debuginfod []string `yaml:"debuginfod"`
	// Arguments has the programs' arguments in the logs.
	Arguments bool `yaml:"arguments"`
}

// Measured are all events that are measured: Events, and what other keys ask for.
func (d *Daemon) Measured() []string {
	if d.Heap == 0 {
		return d.Events
	}
	return append(slices.Clone(d.Events), "heap")
}

// Limits are an age and a size.
type Limits struct {
	AgeText  string `yaml:"age"`
	SizeText string `yaml:"size"`

	Age  time.Duration `yaml:"-"`
	Size uint64        `yaml:"-"` // bytes
}

// Push is an engine that closed pieces are sent to.
type Push struct {
	Engine  string            `yaml:"engine"` // otlp, pyroscope, parca
	URL     string            `yaml:"url"`    // otlp: else that of OTEL_EXPORTER_OTLP_ENDPOINT
	Headers map[string]string `yaml:"headers"`
	// Files in PEM; the system's authorities and no certificate of its own if they are empty.
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	// Arguments sends the programs' arguments too, if logs have them.
	Arguments bool `yaml:"arguments"`
}

// Rule matches processes for which all of its patterns hold. They are shell patterns, of the whole
// text.
type Rule struct {
	Executable string `yaml:"executable"`
	User       string `yaml:"user"` // name or number
	Cgroup     string `yaml:"cgroup"`
	Unit       string `yaml:"unit"`
	Service    string `yaml:"service"`
	// Labels are those of OTEL_RESOURCE_ATTRIBUTES.
	Labels  map[string]string `yaml:"labels"`
	Profile *bool             `yaml:"profile"`
	// Without lists events that are not measured in the processes, and Overhead is their
	// ProcessOverhead, nil for that of all.
	Without  []string `yaml:"without"`
	Overhead *float64 `yaml:"overhead"`
}

// Probed are the events that rules can leave out of a process: those of the CPU are sampled of all.
var Probed = []string{"alloc", "gc", "threads", "blocked", "heap"}

// Default is the configuration of a daemon without a file.
func Default() Daemon {
	return Daemon{
		Events: []string{"cpu-clock", "alloc", "gc"}, Frequency: 97, MaxOverhead: 0.3, ProcessOverhead: 1, BoostOverhead: 3, Group: "ccagent", HeapPauseText: "5ms", HeapPause: 5 * time.Millisecond,
		Piece: Limits{AgeText: "1m", SizeText: "8MB", Age: time.Minute, Size: 8 << 20},
		Keep:  Limits{AgeText: "24h", SizeText: "1GB", Age: 24 * time.Hour, Size: 1 << 30},
	}
}

// mistake is a value that cannot be, and where it is.
type mistake struct {
	path    string // as goccy/go-yaml writes it: $.daemon.keep.age
	message string
}

// check checks and interprets what was read.
func (d *Daemon) check() (wrong *mistake) {
	bad := func(key, format string, args ...any) *mistake {
		return &mistake{"$.daemon." + key, fmt.Sprintf(format, args...)}
	}
	if err := CheckRate(d.Frequency); err != nil {
		return bad("frequency", "%v", err)
	}
	switch {
	case len(d.Events) == 0:
		return bad("events", "name at least one event")
	case !(d.MaxOverhead >= 0 && d.MaxOverhead <= 100):
		return bad("max-overhead", "%v is not in 0..100 per cent", d.MaxOverhead)
	case !(d.ProcessOverhead >= 0 && d.ProcessOverhead <= 100):
		return bad("process-overhead", "%v is not in 0..100 per cent", d.ProcessOverhead)
	case !(d.BoostOverhead >= 0 && d.BoostOverhead <= 100):
		return bad("boost-overhead", "%v is not in 0..100 per cent", d.BoostOverhead)
	}
	if d.Metrics != "" {
		if at, err := netip.ParseAddrPort(d.Metrics); err != nil || !at.Addr().IsLoopback() {
			return bad("metrics", "%q is no address of this host alone, such as 127.0.0.1:9466", d.Metrics)
		}
	}
	for key, l := range map[string]*Limits{"piece": &d.Piece, "keep": &d.Keep} {
		var err error
		if l.Age, err = time.ParseDuration(l.AgeText); err != nil || l.Age < time.Second {
			return bad(key+".age", "%q is no time of a second or more, such as 90s or 24h", l.AgeText)
		}
		if l.Size, err = ParseSize(l.SizeText); err != nil {
			return bad(key+".size", "%v", err)
		}
	}
	if d.HeapText != "" {
		var err error
		if d.Heap, err = time.ParseDuration(d.HeapText); err != nil || d.Heap < time.Second {
			return bad("heap", "%q is no time of a second or more, such as 10m", d.HeapText)
		}
	}
	var err error
	if d.HeapPause, err = time.ParseDuration(d.HeapPauseText); err != nil || d.HeapPause < time.Millisecond || d.HeapPause > time.Second {
		return bad("heap-pause", "%q is no time between 1ms and 1s", d.HeapPauseText)
	}
	servers, err := debuginfod.Parse(d.Debuginfod)
	if err != nil {
		return bad("debuginfod", "%v", err)
	}
	d.Debuginfod = servers
	for i, p := range d.Push {
		at := fmt.Sprintf("push[%d]", i)
		switch p.Engine {
		case "otlp", "pyroscope", "parca":
		default:
			return bad(at+".engine", "%q is no engine: choose otlp, pyroscope or parca", p.Engine)
		}
		u, err := url.Parse(p.URL)
		if p.URL == "" && p.Engine != "otlp" || p.URL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return bad(at+".url", "an address like http://host:port is needed")
		}
		for k, v := range p.Headers {
			if k == "" || strings.ContainsAny(k+v, "\r\n\x00") {
				return bad(at+".headers", "%q is no header", k) // without the value, which may be a secret
			}
		}
		if (p.Cert == "") != (p.Key == "") {
			return bad(at, "cert and key are given together")
		}
	}
	for i, r := range d.Rules {
		at := func(key string) string { return fmt.Sprintf("rules[%d].%s", i, key) }
		if r.Profile == nil {
			return bad(fmt.Sprintf("rules[%d]", i), "a rule says profile: true, or false")
		}
		for key, pattern := range map[string]string{"executable": r.Executable, "user": r.User, "cgroup": r.Cgroup, "unit": r.Unit, "service": r.Service} {
			if _, err := path.Match(pattern, ""); err != nil {
				return bad(at(key), "%q is no pattern: %v", pattern, err)
			}
		}
		for key, pattern := range r.Labels {
			if _, err := path.Match(pattern, ""); err != nil || key == "" {
				return bad(at("labels"), "%q: %q is no label and pattern", key, pattern)
			}
		}
		for n, event := range r.Without {
			if !slices.Contains(Probed, event) {
				return bad(at(fmt.Sprintf("without[%d]", n)), "%q cannot be left out of one process: choose of %s", event, strings.Join(Probed, ", "))
			}
		}
		if r.Overhead != nil && !(*r.Overhead >= 0 && *r.Overhead <= 100) {
			return bad(at("overhead"), "%v is not in 0..100 per cent", *r.Overhead)
		}
	}
	return nil
}

// CheckRate says what is wrong with a rate of samples, Hz.
func CheckRate(hz uint64) error {
	switch {
	case hz == 0 || hz > 10_000:
		return fmt.Errorf("%d is not in 1..10000 Hz", hz)
	case 1000%hz == 0 || hz%1000 == 0:
		return fmt.Errorf("%d Hz is in step with milliseconds, in which programs do things: 47, 97, 241 and 997 are not", hz)
	}
	return nil
}

// explain finds the line of a mistake.
func (m *mistake) explain(text []byte) error {
	says := strings.TrimPrefix(m.path, "$.") + ": " + m.message
	for at := m.path; at != "$"; at = at[:strings.LastIndexByte(at, '.')] { // what is not there is wrong by default
		p, err := yaml.PathString(at)
		if err != nil {
			break
		}
		if node, err := p.ReadNode(bytes.NewReader(text)); err == nil && node.GetToken() != nil {
			return &Error{node.GetToken().Position.Line, says}
		}
	}
	return &Error{1, says}
}

// ParseSize reads a number of bytes such as 512MB; units are powers of 1024.
func ParseSize(s string) (uint64, error) {
	number, shift := strings.ToUpper(strings.TrimSpace(s)), 0
	number = strings.TrimSuffix(number, "B")
	for unit, bits := range map[string]int{"K": 10, "M": 20, "G": 30} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, shift = rest, bits
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n == 0 || n > (1<<63-1)>>shift {
		return 0, fmt.Errorf("%q is not a size; write it like 512MB", s)
	}
	return n << shift, nil
}
