// Package engines is a module of its own, with what tests of ccagent push send to: OpenTelemetry's
// collector (./otelcol) and Pyroscope's generated handler (./pyroscope). The product depends on neither.
package engines
