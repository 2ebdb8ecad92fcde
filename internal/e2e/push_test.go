package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	pprof "github.com/google/pprof/profile"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"ccagent/internal/testprog"
)

// engine starts one of the engines of internal/engines, and gives its address and the folder in which it
// keeps what it receives.
func engine(t *testing.T, name string) (address, dir string) {
	t.Helper()
	needEngines(t)
	address = freeAddress(t)
	return address, engineAt(t, name, address)
}

func needEngines(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("CCAGENT_ENGINES")
	if bin == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "the engines of internal/engines", Hint: "set CCAGENT_ENGINES=$(scripts/engines), which builds them"})
	}
	return bin
}

// engineAt is engine at an address.
func engineAt(t *testing.T, name, address string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	startEngine(t, name, address, address, dir)
	return dir
}

// startEngine starts one of the engines with its arguments, and waits until it listens at an address.
func startEngine(t *testing.T, name, address string, args ...string) {
	t.Helper()
	cmd := command(t, filepath.Join(needEngines(t), name), args...)
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			text, _ := os.ReadFile(out.Name())
			t.Logf("%s:\n%s", name, text)
		}
	})
	eventually(t, name+" listens", func() bool {
		select {
		case <-ended:
			t.Fatalf("%s has ended", name)
		default:
		}
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// received are sums of a profile by function: of leaves, and of whole stacks.
type received struct {
	unit             string
	total            float64
	share, inclusive map[string]float64
}

// add adds a sample, whose locations are lists of functions, leaf first.
func (r *received) add(weight int64, locations [][]string) {
	if r.share == nil {
		r.share, r.inclusive = make(map[string]float64), make(map[string]float64)
	}
	r.total += float64(weight)
	seen := make(map[string]bool)
	for i, functions := range locations {
		for _, f := range functions {
			if i == 0 {
				r.share[f] += float64(weight)
			}
			if !seen[f] {
				seen[f] = true
				r.inclusive[f] += float64(weight)
			}
		}
	}
}

func ofPProf(t *testing.T, raw []byte) map[string]*received {
	t.Helper()
	p, err := pprof.ParseData(raw)
	if err != nil {
		t.Fatal(err)
	}
	r := &received{unit: p.SampleType[0].Unit}
	for _, s := range p.Sample {
		var locations [][]string
		for _, l := range s.Location {
			var functions []string
			for _, line := range l.Line {
				functions = append(functions, line.Function.Name)
			}
			locations = append(locations, functions)
		}
		r.add(s.Value[0], locations)
	}
	return map[string]*received{p.SampleType[0].Type: r}
}

func ofOTLP(t *testing.T, raw []byte) map[string]*received {
	t.Helper()
	var data otlp.ProfilesData
	if err := proto.Unmarshal(raw, &data); err != nil {
		t.Fatal(err)
	}
	d, of := data.Dictionary, make(map[string]*received)
	for _, resource := range data.ResourceProfiles { // of a log each
		for _, p := range resource.ScopeProfiles[0].Profiles {
			event := d.StringTable[p.SampleType.TypeStrindex]
			r := of[event]
			if r == nil {
				r = &received{unit: d.StringTable[p.SampleType.UnitStrindex]}
				of[event] = r
			}
			for _, s := range p.Samples {
				var locations [][]string
				for _, l := range d.StackTable[s.StackIndex].LocationIndices {
					var functions []string
					for _, line := range d.LocationTable[l].Lines {
						functions = append(functions, d.StringTable[d.FunctionTable[line.FunctionIndex].NameStrindex])
					}
					locations = append(locations, functions)
				}
				r.add(s.Values[0], locations)
			}
		}
	}
	return of
}

// only reads the one file of a folder.
func only(t *testing.T, dir string) []byte {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v is in %s, want one file", names, dir)
	}
	text, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// pushedSeries is what Pyroscope's handler was sent, and Parca's call, in JSON.
type pushedSeries struct {
	Labels  json.RawMessage
	Samples []struct{ RawProfile string }
}

func ofSeries(t *testing.T, series []pushedSeries, service string) map[string]*received {
	t.Helper()
	all := make(map[string]*received)
	for _, s := range series {
		if !strings.Contains(strings.ReplaceAll(string(s.Labels), " ", ""), `{"name":"service_name","value":"`+service+`"}`) {
			t.Errorf("labels %s", s.Labels)
		}
		raw, err := base64.StdEncoding.DecodeString(s.Samples[0].RawProfile)
		if err != nil {
			t.Fatal(err)
		}
		for kind, r := range ofPProf(t, raw) {
			all[kind] = r
		}
	}
	return all
}

// The engines receive what ccview shows of the same range: the same functions, with weights that are equal
// to a part in a million.
func TestEnginesReceiveWhatCcviewShows(t *testing.T) {
	collector, collected := engine(t, "otelcol")
	pyroscope, pushed := engine(t, "pyroscope")
	var written []byte
	parca := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/profiles/writeraw" {
			written, _ = io.ReadAll(r.Body)
		}
		io.WriteString(w, "{}")
	}))
	defer parca.Close()

	log, _ := record(t, []string{"-e", "cpu-clock,alloc"}, testprog.Build(t, "alloc31", testprog.Options{}), "60000")
	const window = "0.05-100"
	r := run(t, command(t, ccview, "push", "--to", "otlp=http://"+collector, "--to", "pyroscope=http://"+pyroscope, "--to", "parca="+parca.URL, "--range", window, log))
	if r.status != 0 || strings.Count(r.stdout, "1 log sent") != 3 {
		t.Fatalf("push: %+v", r)
	}
	var push, write struct{ Series []pushedSeries }
	if err := json.Unmarshal(only(t, pushed), &push); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(gunzipped(t, written), &write); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]map[string]*received{
		"the collector": ofOTLP(t, only(t, collected)), "pyroscope": ofSeries(t, push.Series, "alloc31"), "parca": ofSeries(t, write.Series, "alloc31"),
	} {
		for kind, event := range map[string]string{"cpu": "cpu-clock", "alloc_space": "alloc"} {
			var hot struct {
				Total float64
				Rows  []struct {
					Element, Kind    string
					Share, Inclusive float64
				}
			}
			view(t, &hot, "hot", "--event", event, "--range", window, "--top", "0", log)
			of := got[kind]
			if of == nil || of.total != hot.Total || hot.Total == 0 {
				t.Errorf("%s: %s: %+v, want a total of %v", name, kind, of, hot.Total)
				continue
			}
			bindings := 0
			for _, row := range hot.Rows {
				if row.Kind != "binding" {
					continue
				}
				bindings++
				share, inclusive := of.share[row.Element]/of.total, of.inclusive[row.Element]/of.total
				if math.Abs(share-row.Share) > 1e-6 || math.Abs(inclusive-row.Inclusive) > 1e-6 {
					t.Errorf("%s: %s: %s has %v, %v with its callees; hot shows %v, %v", name, kind, row.Element, share, inclusive, row.Share, row.Inclusive)
				}
			}
			if bindings == 0 {
				t.Errorf("hot shows no binding of %s", event)
			}
		}
	}
}

// The pipeline that docs/fleet.md recommends passes profiles on as they are.
func TestRecommendedPipeline(t *testing.T) {
	behind, passed := engine(t, "otelcol")
	direct, kept := engine(t, "otelcol")
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, config, _ := strings.Cut(string(text), "```yaml\n")
	config, _, _ = strings.Cut(config, "```")
	front := freeAddress(t)
	for placeholder, address := range map[string]string{"0.0.0.0:4318": front, "https://engine:4318": "http://" + behind} {
		if !strings.Contains(config, placeholder) {
			t.Fatalf("no %s in\n%s", placeholder, config)
		}
		config = strings.ReplaceAll(config, placeholder, address)
	}
	startEngine(t, "otelcol", front, config)

	log, _ := record(t, []string{"-e", "cpu-clock,alloc"}, testprog.Build(t, "alloc31", testprog.Options{}), "20000")
	r := run(t, command(t, ccview, "push", "--to", "otlp=http://"+front, "--to", "otlp=http://"+direct, log))
	if r.status != 0 || strings.Count(r.stdout, "1 log sent") != 2 {
		t.Fatalf("push: %+v", r)
	}
	eventually(t, "the profile is passed on", func() bool {
		names, err := filepath.Glob(filepath.Join(passed, "*"))
		return err == nil && len(names) > 0
	})
	want := ofOTLP(t, only(t, kept))
	if got := ofOTLP(t, only(t, passed)); len(got) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("passed on: %+v\nsent: %+v", got, want)
	}
}

func gunzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
