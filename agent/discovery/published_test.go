package discovery

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ccagent/internal/testprog"
)

// message is a Resource as OpenTelemetry's own library encodes it.
func message(t testing.TB, text map[string]string, more ...*common.KeyValue) []byte {
	t.Helper()
	r := &resource.Resource{Attributes: more}
	for key, value := range text {
		r.Attributes = append(r.Attributes, &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}})
	}
	raw, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Attributes are read from a Resource, and from a message that has one; values of other kinds are passed over.
func TestParseContext(t *testing.T) {
	text := map[string]string{"service.name": "api", "deployment.environment.name": "test", "empty": ""}
	raw := message(t, text,
		&common.KeyValue{Key: "on", Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: true}}},
		&common.KeyValue{Key: "replicas", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -3}}},
		&common.KeyValue{Key: "share", Value: &common.AnyValue{Value: &common.AnyValue_DoubleValue{DoubleValue: 0.25}}},
		&common.KeyValue{Key: "list", Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: &common.ArrayValue{}}}},
		&common.KeyValue{Key: "none"})
	want := maps.Clone(text)
	maps.Copy(want, map[string]string{"on": "true", "replicas": "-3", "share": "0.25"})
	inside := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), raw)
	inside = protowire.AppendBytes(protowire.AppendTag(inside, 2, protowire.BytesType), []byte("what is to come"))
	for name, of := range map[string][]byte{"a resource": raw, "a message with a resource": inside} {
		if got, err := parseContext(of); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s has %v, want %v; %v", name, got, want, err)
		}
	}
	many := map[string]string{}
	for i := range 3 * maxLabels {
		many[strings.Repeat("k", i+1)] = strings.Repeat("v", 3*maxName)
	}
	got, err := parseContext(message(t, many))
	if err != nil || len(got) > maxLabels {
		t.Errorf("%d attributes, %v", len(got), err)
	}
	for key, value := range got {
		if len(key) > maxName || len(value) > maxName {
			t.Errorf("an attribute has %d and %d bytes", len(key), len(value))
		}
	}
}

// contextAt is memory with a context at its beginning. After each read of a payload step is called.
type contextAt struct {
	*bytes.Reader
	step func()
}

func (m contextAt) ReadAt(to []byte, at int64) (int, error) {
	n, err := m.Reader.ReadAt(to, at)
	if at != 0 && m.step != nil {
		m.step()
	}
	return n, err
}

// context is a header, with its message behind it.
func context(version, size uint32, time, payload uint64, message []byte) []byte {
	raw := append([]byte(contextSignature), make([]byte, contextHeader-len(contextSignature))...)
	binary.NativeEndian.PutUint32(raw[contextVersionAt:], version)
	binary.NativeEndian.PutUint32(raw[contextSizeAt:], size)
	binary.NativeEndian.PutUint64(raw[contextTimeAt:], time)
	binary.NativeEndian.PutUint64(raw[contextPayloadAt:], payload)
	return append(raw, message...)
}

// A header that lies costs a bounded read, and what changes while it is read is not taken.
func TestHostileContext(t *testing.T) {
	m := message(t, map[string]string{"service.name": "api"})
	size := uint32(len(m))
	good := context(contextVersion, size, 1, contextHeader, m)
	read := func(raw []byte) (Published, error) {
		return readContext(contextAt{Reader: bytes.NewReader(raw)}, 0, Published{})
	}
	if p, err := read(good); err != nil || p.Time != 1 || p.Attributes["service.name"] != "api" {
		t.Errorf("a context: %+v, %v", p, err)
	}
	for name, raw := range map[string][]byte{
		"none":          make([]byte, 100),
		"a version":     context(contextVersion+1, size, 1, contextHeader, m),
		"being written": context(contextVersion, size, 0, contextHeader, m),
		"large":         context(contextVersion, math.MaxUint32, 1, contextHeader, m),
		"elsewhere":     context(contextVersion, size, 1, math.MaxUint64, m),
		"past the end":  context(contextVersion, size+1, 1, contextHeader, m),
		"cut off":       good[:contextHeader-1],
		"no message":    context(contextVersion, 3, 1, contextHeader, []byte{1, 2, 3}),
	} {
		if p, err := read(raw); err == nil || len(p.Attributes) > 0 {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	if _, err := readContext(contextAt{Reader: bytes.NewReader(good)}, math.MaxUint64, Published{}); err == nil {
		t.Error("a header is read at no address")
	}
	changing := bytes.Clone(good)
	changed := 0
	always := contextAt{bytes.NewReader(changing), func() { changed++; changing[contextTimeAt]++ }}
	if p, err := readContext(always, 0, Published{}); !errors.Is(err, errContextChanging) || changed != contextTries {
		t.Errorf("a context that changes at each of %d reads: %+v, %v", changed, p, err)
	}
	once := bytes.Clone(good)
	settles := contextAt{bytes.NewReader(once), func() { once[contextTimeAt] = 7 }}
	if p, err := readContext(settles, 0, Published{}); err != nil || p.Time != 7 {
		t.Errorf("a context that has changed once: %+v, %v", p, err)
	}
}

// What is taken is within its bounds, whatever a process publishes.
func FuzzParseContext(f *testing.F) {
	f.Add(message(f, map[string]string{"service.name": "api"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		all, err := parseContext(raw)
		if (err == nil) != (all != nil) || len(all) > maxLabels {
			t.Fatalf("%d attributes, %v", len(all), err)
		}
		for key, value := range all {
			if key == "" || len(key) > maxName || len(value) > maxName {
				t.Fatalf("%q is %q", key, value)
			}
		}
		_, _ = readContext(bytes.NewReader(raw), 0, Published{}) // it must return
	})
}

// publish publishes a context of this process's, by a memory file or by a named anonymous mapping.
func publish(t *testing.T, file bool, message []byte) {
	t.Helper()
	fd, flags := -1, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS
	if file {
		var err error
		if fd, err = unix.MemfdCreate(contextSignature, unix.MFD_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Ftruncate(fd, int64(os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
		flags = unix.MAP_PRIVATE
	}
	page, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(page) })
	at := uintptr(unsafe.Pointer(&page[0]))
	copy(page, context(contextVersion, uint32(len(message)), 5, uint64(at)+contextHeader, message))
	name := []byte(contextSignature + "\x00")
	const setVMA, anonName = 0x53564d41, 0
	_, _, errno := unix.Syscall6(unix.SYS_PRCTL, setVMA, anonName, at, uintptr(len(page)), uintptr(unsafe.Pointer(&name[0])), 0)
	if errno != 0 && !file {
		t.Skipf("unsupported: naming anonymous memory: %v", errno)
	}
}

// A real process's context is found by its mapping, of either kind, and read once.
func TestReadPublished(t *testing.T) {
	for name, file := range map[string]bool{"a memory file": true, "anonymous memory": false} {
		t.Run(name, func(t *testing.T) {
			pid := uint32(os.Getpid())
			if p, err := ReadPublished(pid, Published{}); err == nil {
				t.Fatalf("there is %+v before", p)
			}
			publish(t, file, message(t, map[string]string{"service.name": "api", "process.command_line": "secret", "team": "pay"}))
			p := Process{PID: pid}
			if !p.Refresh() || p.Refresh() {
				t.Error("the context is not found once")
			}
			if p.Service != "api" || p.Labels["team"] != "pay" || !maps.Equal(p.Attributes(), map[string]string{"team": "pay"}) {
				t.Errorf("it is called %q, with %v and %v", p.Service, p.Labels, p.Attributes())
			}
		})
	}
}

// What the environment says goes before what is published; a process that publishes nothing is as before.
func TestEnvironmentGoesFirst(t *testing.T) {
	exe := testprog.Build(t, "spin31", testprog.Options{})
	cmd := exec.Command(exe, "1000000000")
	cmd.Env = append(os.Environ(), "OTEL_SERVICE_NAME=env", "OTEL_RESOURCE_ATTRIBUTES=team=env")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	testprog.WaitExecuted(t, cmd.Process.Pid)
	p, ok := New().Look(uint32(cmd.Process.Pid))
	if !ok || p.Refresh() || p.Published.Time != 0 {
		t.Errorf("a process that publishes nothing: %+v", p)
	}
	p.Published = Published{Time: 1, Attributes: map[string]string{"service.name": "published", "team": "published", "tier": "back"}}
	p.name()
	if p.Service != "env" || p.Labels["team"] != "env" || p.Labels["tier"] != "back" {
		t.Errorf("it is called %q, with %v", p.Service, p.Labels)
	}
}

var _ io.ReaderAt = contextAt{}
