// Command otelcol is OpenTelemetry's collector with the OTLP receiver and exporter, and with one that writes what
// arrives to files, one a request, as protobuf.
//
//	otelcol HOST:PORT DIR    keeps what arrives in the folder
//	otelcol CONFIGURATION    does what the configuration says, a text in YAML
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
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
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
	name := fmt.Sprintf("%06d.pb", k.n.Add(1))
	part := k.dir + "." + name // nobody reads half a file
	if err := os.WriteFile(part, b, 0o600); err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(k.dir, name))
}

var _ xconsumer.Profiles = (*keeper)(nil)

func none() component.Config { return &struct{}{} }

func main() {
	var config, dir string
	switch len(os.Args) {
	case 2:
		config = os.Args[1]
	case 3:
		dir = os.Args[2]
		config = fmt.Sprintf(`{receivers: {otlp: {protocols: {http: {endpoint: %q}}}}, exporters: {keep: {}}, service: {pipelines: {profiles: {receivers: [otlp], exporters: [keep]}}}}`, os.Args[1])
	default:
		log.Fatal("otelcol HOST:PORT DIR, or otelcol CONFIGURATION")
	}
	keep := xexporter.NewFactory(component.MustNewType("keep"), none, xexporter.WithProfiles(
		func(context.Context, exporter.Settings, component.Config) (xexporter.Profiles, error) {
			return &keeper{dir: dir}, nil
		}, component.StabilityLevelDevelopment))
	factories := func() (f otelcol.Factories, err error) {
		f.Telemetry = telemetry.NewFactory(none)
		if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
			return f, err
		}
		f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](keep, otlphttpexporter.NewFactory())
		return f, err
	}
	cmd := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol"}, Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{DefaultScheme: "yaml",
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()}}},
	})
	cmd.SetArgs([]string{"--feature-gates=+service.profilesSupport", "--config", "yaml:" + config})
	if err := cmd.Execute(); err != nil {
		log.Fatal(err)
	}
}
