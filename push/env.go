package push

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// errProtocol is wrapped by FromEnv for OTLP over anything but HTTP with protobuf.
var errProtocol = errors.New("only http/protobuf is spoken")

// FromEnv sets what OpenTelemetry's environment variables say of an OTLP target and the target does
// not have: OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, _COMPRESSION, _PROTOCOL, _CERTIFICATE,
// _CLIENT_CERTIFICATE and _CLIENT_KEY, each also as OTEL_EXPORTER_OTLP_PROFILES_…, which goes first.
// get is os.Getenv.
func (t *Target) FromEnv(get func(name string) string) error {
	one := func(name string) (value, from string) {
		for _, prefix := range []string{"OTEL_EXPORTER_OTLP_PROFILES_", "OTEL_EXPORTER_OTLP_"} {
			if v := strings.TrimSpace(get(prefix + name)); v != "" {
				return v, prefix + name
			}
		}
		return "", ""
	}
	if t.URL == "" {
		v, from := one("ENDPOINT")
		t.URL, t.Exact = v, strings.Contains(from, "PROFILES")
	}
	if v, from := one("PROTOCOL"); v != "" && v != "http/protobuf" {
		return fmt.Errorf("%s=%s: %w", from, v, errProtocol)
	}
	if v, from := one("HEADERS"); v != "" && len(t.Headers) == 0 {
		var err error
		if t.Headers, err = ParseHeaders(v); err != nil {
			return fmt.Errorf("%s: %w", from, err) // without the value, which may be a secret
		}
	}
	if v, from := one("TIMEOUT"); v != "" && t.Timeout == 0 {
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil || ms == 0 {
			return fmt.Errorf("%s=%s: a number of milliseconds", from, v)
		}
		t.Timeout = time.Duration(ms) * time.Millisecond
	}
	switch v, from := one("COMPRESSION"); v {
	case "", "gzip":
	case "none":
		t.Plain = true
	default:
		return fmt.Errorf("%s=%s: choose gzip or none", from, v)
	}
	for name, to := range map[string]*string{"CERTIFICATE": &t.TLS.CA, "CLIENT_CERTIFICATE": &t.TLS.Certificate, "CLIENT_KEY": &t.TLS.Key} {
		if v, _ := one(name); v != "" && *to == "" {
			*to = v
		}
	}
	return nil
}

// ParseHeaders parses headers as OpenTelemetry writes them: key=value,key=value, with %-escapes in the
// values.
func ParseHeaders(s string) (map[string]string, error) {
	headers := make(map[string]string)
	for i, pair := range strings.Split(s, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		v, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil || strings.ContainsAny(key+v, "\r\n\x00") {
			return nil, fmt.Errorf("header %d is not key=value", i+1)
		}
		headers[key] = v
	}
	return headers, nil
}
