// Package alloc samples allocation, in bytes, by probes in the run-time system.
//
// # Stratified sampling
//
// Each kind of allocation is a stratum. A sample stands for bytes of its own stratum alone, so
// that code that one probe sees often does not get the bytes of code that it never sees:
//
//	Site         A hit is                           Stratum           Weight of a sample, from a continuous probe
//	SiteNursery  a heap check finds the nursery     heapStratum       small bytes since the capability's last sample here
//	             full
//	             a primop finds it full             primopStratum     the same, times the primops' share of the bytes
//	             (newByteArray#, ...)                                 by the primops' share of such hits
//	SiteBlock    a heap check goes on to the next   heapStratum       4096 bytes times the thinning
//	             block of the nursery
//	SiteLarge    a large object is allocated        largeStratum      bytes of large objects since the last sample here
//	SiteEnd      the run-time system ends           none; it reports the total for the last bytes
//
// The total comes from the run-time system's own counters, which every hit reports and the
// agent reads. Counts of SiteLarge and SiteBlock say how it divides between the strata. The
// ledger (ledger.go) keeps for each stratum how many bytes were allocated and how many of them
// were attributed to samples. What is left when a process ends goes to its recent samples, so
// that weights add up to the total.
//
// # Duty cycle
//
// A probe that would exceed the budget (a token bucket, package overhead) continuously is in
// place for windows only. A window begins at a random time, so its hits are a random choice of
// all, and each counts by the time from window to window divided by the window's length (the
// Horvitz-Thompson estimator), corrected by what the stratum really allocated. control.go
// chooses per probe: continuous while all such probes take at most maxContinuousShare of the
// budget, else windows, as long and as often as the bucket has tokens for them. Frequent hits
// are thinned besides: the kernel walks the stack for one hit in so many.
package alloc
