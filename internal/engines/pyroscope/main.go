// Command pyroscope serves Pyroscope's generated handler of pushes, which writes what arrives to files,
// one a request, as JSON.
//
//	pyroscope HOST:PORT DIR
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"connectrpc.com/connect"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"google.golang.org/protobuf/encoding/protojson"
)

type keeper struct {
	dir string
	n   atomic.Int64
}

func (k *keeper) Push(_ context.Context, r *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	b, err := protojson.Marshal(r.Msg)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(k.dir, fmt.Sprintf("%06d.json", k.n.Add(1))), b, 0o600); err != nil {
		return nil, err
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("pyroscope HOST:PORT DIR")
	}
	mux := http.NewServeMux()
	mux.Handle(pushv1connect.NewPusherServiceHandler(&keeper{dir: os.Args[2]}))
	log.Fatal(http.ListenAndServe(os.Args[1], mux))
}
