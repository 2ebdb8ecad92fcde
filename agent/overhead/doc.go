// Package overhead keeps what measuring costs within what was asked for: a token bucket
// (Bucket), the rate of events that are sampled by frequency or period (Sampling), and what a
// hit of a probe and an interrupt cost on this machine (Costs).
//
// All times are in ns. A Budget divides what --max-overhead allows between the kinds of
// measuring, so that none starves the others. Most buckets fill with the CPU time that the
// target uses; the one of the probes in the run-time system fills with the time that passes,
// by the Budget's clock.
package overhead
