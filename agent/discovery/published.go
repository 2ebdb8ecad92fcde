package discovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"

	"ccagent/agent/procfs"
)

// A process may publish what it is called, for readers outside of it: OpenTelemetry's process context
// (https://github.com/open-telemetry/opentelemetry-specification/blob/main/oteps/profiles/4719-process-ctx.md). It is a mapping
// with a name of its own, with a header that has the place of a message of protocol buffers: a Resource, or, as later SDKs have it,
// a message whose first field is a Resource. All of it is what the program says, and is bounded here.

// names of the mapping. A memory file's has a mark behind it once it is closed.
var contextNames = []string{"/memfd:OTEL_CTX (deleted)", "/memfd:OTEL_CTX", "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]"}

const (
	contextSignature = "OTEL_CTX"
	contextVersion   = 2
	// Offsets in the header.
	contextVersionAt, contextSizeAt, contextTimeAt, contextPayloadAt, contextHeader = 8, 12, 16, 24, 32
	// maxContext bounds the message, in bytes, and maxContexts the mappings that are looked at.
	maxContext  = 1 << 14
	maxContexts = 4
	// contextTries is how often a context is read that is being changed.
	contextTries = 3
)

var (
	errNoContext       = errors.New("the process publishes no context")
	errContextChanging = errors.New("the published context is being changed")
)

// Published are the attributes that a process publishes of itself.
type Published struct {
	// Time is when they were published, by the process's word; 0 if there are none.
	Time       uint64
	Attributes map[string]string
}

// ReadPublished reads what a process publishes, unless that is what is known already.
func ReadPublished(pid uint32, known Published) (Published, error) {
	memory, err := os.OpenFile("/proc/"+strconv.FormatUint(uint64(pid), 10)+"/mem", os.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Published{}, err
	}
	defer memory.Close()
	regions, err := procfs.Named(int(pid), contextNames, maxContexts)
	if err != nil {
		return Published{}, err
	}
	err = errNoContext
	for _, r := range regions {
		var p Published
		if p, err = readContext(memory, r.Start, known); err == nil {
			return p, nil
		}
	}
	return Published{}, err
}

// readContext reads the context whose header is at an address.
func readContext(memory io.ReaderAt, at uint64, known Published) (Published, error) {
	for range contextTries {
		head, err := contextHead(memory, at)
		if err != nil || head.time == known.Time && head.time != 0 {
			return known, err
		}
		if head.time == 0 {
			continue
		}
		text := make([]byte, head.size)
		if _, err := memory.ReadAt(text, int64(head.payload)); err != nil {
			return Published{}, fmt.Errorf("read a published context: %w", err)
		}
		if again, err := contextHead(memory, at); err != nil || again != head {
			continue
		}
		attributes, err := parseContext(text)
		return Published{Time: head.time, Attributes: attributes}, err
	}
	return Published{}, errContextChanging
}

type head struct {
	time, payload uint64
	size          uint32
}

// contextHead reads a header.
func contextHead(memory io.ReaderAt, at uint64) (h head, err error) {
	var raw [contextHeader]byte
	if at > math.MaxInt64-contextHeader {
		return h, errNoContext
	}
	if _, err := memory.ReadAt(raw[:], int64(at)); err != nil {
		return h, fmt.Errorf("read a published context: %w", err)
	}
	if string(raw[:len(contextSignature)]) != contextSignature {
		return h, errNoContext
	}
	if v := binary.NativeEndian.Uint32(raw[contextVersionAt:]); v != contextVersion {
		return h, fmt.Errorf("the published context has version %d, %d is known", v, contextVersion)
	}
	h.size = binary.NativeEndian.Uint32(raw[contextSizeAt:])
	h.time = binary.NativeEndian.Uint64(raw[contextTimeAt:])
	h.payload = binary.NativeEndian.Uint64(raw[contextPayloadAt:])
	if h.size > maxContext || h.payload > math.MaxInt64-maxContext {
		return h, fmt.Errorf("the published context has %d bytes at %#x: at most %d are read", h.size, h.payload, maxContext)
	}
	return h, nil
}

// errContext is returned for what is no message of protocol buffers.
var errContext = errors.New("the published context is no resource")

// parseContext takes attributes out of a Resource, or out of a message whose first field is one. Those of values that
// are no text, number or truth value are passed over.
func parseContext(text []byte) (map[string]string, error) {
	all := map[string]string{}
	err := eachField(text, func(field protowire.Number, value []byte) error {
		if field != 1 || value == nil {
			return nil
		}
		if !nested(value) {
			return attribute(value, all)
		}
		return eachField(value, func(field protowire.Number, value []byte) error {
			if field != 1 || value == nil {
				return nil
			}
			return attribute(value, all)
		})
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// nested reports whether a message is a Resource, and no attribute: its first field holds an attribute, which begins
// with the tag of its key. No key begins with that byte, which ends a line.
func nested(message []byte) bool {
	const tag = 1<<3 | byte(protowire.BytesType)
	if len(message) == 0 || message[0] != tag {
		return false
	}
	first, n := protowire.ConsumeBytes(message[1:])
	return n > 0 && len(first) > 0 && first[0] == tag
}

// attribute takes a KeyValue.
func attribute(message []byte, into map[string]string) error {
	var key, value string
	known := false
	err := eachField(message, func(field protowire.Number, text []byte) error {
		switch {
		case field == 1 && text != nil:
			key = clip(string(text))
		case field == 2 && text != nil:
			return eachValue(text, func(v string) { value, known = clip(v), true })
		}
		return nil
	})
	if err == nil && known && key != "" && (len(into) < maxLabels || into[key] != "") {
		into[key] = value
	}
	return err
}

// eachField calls f with each field of a message; value is nil where it is no bytes.
func eachField(message []byte, f func(field protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errContext
		}
		message = message[n:]
		var value []byte
		if kind == protowire.BytesType {
			if value, n = protowire.ConsumeBytes(message); n >= 0 && value == nil {
				value = []byte{}
			}
		} else {
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return errContext
		}
		message = message[n:]
		if err := f(field, value); err != nil {
			return err
		}
	}
	return nil
}

// eachValue calls f with an AnyValue's text, truth value or number as text.
func eachValue(message []byte, f func(value string)) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errContext
		}
		message = message[n:]
		switch {
		case field == 1 && kind == protowire.BytesType:
			text, size := protowire.ConsumeBytes(message)
			if n = size; n >= 0 {
				f(string(text))
			}
		case field == 2 && kind == protowire.VarintType:
			v, size := protowire.ConsumeVarint(message)
			n = size
			f(strconv.FormatBool(v != 0))
		case field == 3 && kind == protowire.VarintType:
			v, size := protowire.ConsumeVarint(message)
			n = size
			f(strconv.FormatInt(int64(v), 10))
		case field == 4 && kind == protowire.Fixed64Type:
			v, size := protowire.ConsumeFixed64(message)
			n = size
			f(strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64))
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return errContext
		}
		message = message[n:]
	}
	return nil
}

// Refresh looks whether a process publishes what it did not when it was looked at last, and reports whether it does. What
// its environment says goes before that.
func (p *Process) Refresh() (changed bool) {
	fresh, err := ReadPublished(p.PID, p.Published)
	if err != nil || fresh.Time == p.Published.Time {
		return false
	}
	p.Published = fresh
	p.name()
	return true
}

// Attributes returns what a process says of itself by OpenTelemetry's process context. The attributes of process,
// host and container are left out, since the kernel knows those better, and some hold the command line.
func (p *Process) Attributes() map[string]string {
	all := map[string]string{}
	for key, value := range p.Published.Attributes {
		if key != "service.name" && key != "container.id" && !strings.HasPrefix(key, "process.") && !strings.HasPrefix(key, "host.") {
			all[key] = value
		}
	}
	return all
}
