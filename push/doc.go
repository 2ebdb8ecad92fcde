// Package push sends what logs hold to the engines that store the profiles of a fleet: OpenTelemetry's
// collector, Pyroscope and Parca.
//
// A log becomes a [Batch]: a pprof profile for each event, and labels of the process by OpenTelemetry's
// semantic conventions. An [Engine] makes a request of it; a cause set is the lines of one location, as
// inlined functions are, and weights stay in their own unit. A [Queue] sends the requests for logs, one
// queue for each engine: it holds names of logs, not what is in them, so its memory is bounded and the
// logs themselves are its spill. What is dropped, it counts, by [Reason].
//
// # What leaves the host
//
// Names and lines of code, weights, labels of threads, and labels of the process. Its arguments do only
// where [Rules] say so; environment and source text never.
package push
