// Command otelcol is OpenTelemetry's collector with the OTLP receiver and one exporter, which writes what
// arrives to files, one a request, as protobuf.
//
//	otelcol HOST:PORT DIR
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

// keeper is the exporter. Writing is synchronous: a request is answered when its file is there.
type keeper struct {
	component.StartFunc
	component.ShutdownFunc
	dir string
	n   atomic.Int64
}

func (*keeper) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (k *keeper) ConsumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(k.dir, fmt.Sprintf("%06d.pb", k.n.Add(1))), b, 0o600)
}

var _ xconsumer.Profiles = (*keeper)(nil)

func none() component.Config { return &struct{}{} }

func main() {
	if len(os.Args) != 3 {
		log.Fatal("otelcol HOST:PORT DIR")
	}
	keep := xexporter.NewFactory(component.MustNewType("keep"), none, xexporter.WithProfiles(
		func(context.Context, exporter.Settings, component.Config) (xexporter.Profiles, error) {
			return &keeper{dir: os.Args[2]}, nil
		}, component.StabilityLevelDevelopment))
	factories := func() (f otelcol.Factories, err error) {
		f.Telemetry = telemetry.NewFactory(none)
		if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
			return f, err
		}
		f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](keep)
		return f, err
	}
	config := fmt.Sprintf(`yaml:{receivers: {otlp: {protocols: {http: {endpoint: %q}}}}, exporters: {keep: {}}, service: {pipelines: {profiles: {receivers: [otlp], exporters: [keep]}}}}`, os.Args[1])
	cmd := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol"}, Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{DefaultScheme: "yaml",
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()}}},
	})
	cmd.SetArgs([]string{"--feature-gates=+service.profilesSupport", "--config", config})
	if err := cmd.Execute(); err != nil {
		log.Fatal(err)
	}
}
