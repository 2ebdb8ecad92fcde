package push

import (
	"errors"
	"fmt"
)

// Request is what is sent for batches: a body for a path below the engine's address.
type Request struct {
	Path        string
	ContentType string
	Body        []byte
}

// Engine is how one kind of engine is talked to.
type Engine struct {
	Name string
	Path string // of requests, below the engine's address
	// Request makes the request for batches that have profiles.
	Request func(of []*Batch) (*Request, error)
	// Answer reads the body of an answer of status 200. It returns the number of profiles that
	// the engine has rejected, and with errNoEngine a body that no such engine sends.
	Answer func(contentType string, body []byte) (rejected int64, why string, err error)
}

// Engines lists all kinds.
var Engines = []Engine{OTLP, Pyroscope, Parca}

// ByName returns the engine of a name.
func ByName(name string) (Engine, error) {
	for _, e := range Engines {
		if e.Name == name {
			return e, nil
		}
	}
	return Engine{}, fmt.Errorf("unknown engine %q: choose otlp, pyroscope or parca", name)
}

// errNoEngine is wrapped by the error for an answer that is not the engine's, as of a proxy or of another
// server at the address.
var errNoEngine = errors.New("what answers is no such engine")
