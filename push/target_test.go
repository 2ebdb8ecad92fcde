package push

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// OpenTelemetry's variables name the address, headers, limits and certificates; those of profiles go
// first, and what the target has already before both.
func TestEnvironment(t *testing.T) {
	const g, p = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_PROFILES_"
	headers := map[string]string{"authorization": "Basic a=b", "x": "1"}
	for name, c := range map[string]struct {
		env  map[string]string
		want Target
		bad  bool
	}{
		"none": {nil, Target{}, false},
		"all": {map[string]string{g + "ENDPOINT": "https://c:4318/x", g + "HEADERS": "authorization=Basic%20a=b, x=1", g + "TIMEOUT": "2500", g + "COMPRESSION": "none",
			g + "PROTOCOL": "http/protobuf", g + "CERTIFICATE": "ca", g + "CLIENT_CERTIFICATE": "cert", g + "CLIENT_KEY": "key"},
			Target{URL: "https://c:4318/x", Headers: headers, Timeout: 2500 * time.Millisecond, Plain: true, TLS: TLS{"ca", "cert", "key"}}, false},
		"profiles": {map[string]string{g + "ENDPOINT": "http://c", p + "ENDPOINT": "http://d/exact", p + "TIMEOUT": "1", g + "TIMEOUT": "2"},
			Target{URL: "http://d/exact", Exact: true, Timeout: time.Millisecond}, false},
		"grpc":    {map[string]string{g + "PROTOCOL": "grpc"}, Target{}, true},
		"header":  {map[string]string{g + "HEADERS": "secret"}, Target{}, true},
		"newline": {map[string]string{g + "HEADERS": "a=b%0d%0ac:d"}, Target{}, true},
		"timeout": {map[string]string{g + "TIMEOUT": "5s"}, Target{}, true},
	} {
		var got Target
		err := got.FromEnv(func(name string) string { return c.env[name] })
		if (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !c.bad && (got.URL != c.want.URL || got.Exact != c.want.Exact || !maps.Equal(got.Headers, c.want.Headers) || got.Timeout != c.want.Timeout || got.Plain != c.want.Plain || got.TLS != c.want.TLS) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Requests are encrypted with the authority that is given, and carry the headers; another authority's
// server gets none.
func TestTLSAndHeaders(t *testing.T) {
	var got http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Content-Type", protobuf)
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	send := func(target Target) error {
		target.Engine, target.URL = OTLP, server.URL
		c, err := target.client()
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = c.send(t.Context(), &Request{Path: "/p", ContentType: protobuf, Body: []byte("x")})
		return err
	}
	if err := send(Target{TLS: TLS{CA: ca}, Headers: map[string]string{"Authorization": "Bearer t"}}); err != nil {
		t.Error(err)
	}
	if got.Get("Authorization") != "Bearer t" || got.Get("Content-Encoding") != "gzip" || got.Get("Content-Type") != protobuf {
		t.Errorf("headers %v", got)
	}
	got = nil
	var again *later
	var unknown *tls.CertificateVerificationError
	if err := send(Target{}); !errors.As(err, &again) || !errors.As(err, &unknown) || got != nil {
		t.Errorf("without the authority: %v, %v", err, got)
	}
	for _, bad := range []Target{{URL: "engine:4318"}, {URL: "http://e", TLS: TLS{CA: "/none"}}, {URL: "http://e", TLS: TLS{Certificate: "c"}}} {
		bad.Engine = OTLP
		if _, err := bad.client(); err == nil {
			t.Errorf("%+v makes a client", bad)
		}
	}
}
