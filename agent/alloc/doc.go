// Package alloc samples allocation, in bytes, by probes in the run-time system.
//
// # Stratified sampling
//
// Each kind of allocation is a stratum. How much a stratum has is what the run-time system has
// counted, and only which code made it is known from samples: no stratum is given what another
// allocated, whichever probes are in place.
//
//	Stratum        Its bytes                          Who: a sample at
//	heapStratum    small objects of compiled code     SiteNursery: a heap check finds the nursery
//	                                                  full; SiteBlock: it goes on to the next block
//	primopStratum  small objects that C code makes    SiteNursery: a primop finds it full
//	               for primops                        (newByteArray#, ...)
//	threadStratum  threads and their first stacks     SiteNursery: fork# finds it full
//	largeStratum   large objects                      SiteLarge: a large object is allocated
//	chunkStratum   of these, chunks of stacks         SiteLarge, called by threadStackOverflow
//
// All bytes are in total_allocated of each capability, which every hit reports and the agent
// reads. At a full nursery the BPF program reads generations[0].n_new_large_words, which counts
// from collection to collection, and stats, which has what was allocated by the last one: so
// each cycle of which a full nursery was seen is divided into large and small exactly (count_cycle). A
// survey, of one full nursery now and then, divides small objects by the blocks that C code has
// taken to the front of the nursery, and large ones by the headers in
// generations[0].large_objects (survey_nursery). Cycles that were not seen are divided as
// those at the time, and as what the unfinished cycle has whenever the agent looks (split.go).
//
// Where a nursery is full because large objects exceed their limit, or a stack check finds so,
// the sample says nothing of who filled it, and has no weight.
//
// SiteEnd, where the run-time system ends, has no samples; it reports the total for the last
// bytes. The ledger (ledger.go) keeps for each stratum how many bytes were allocated and how
// many of them were attributed to samples. What is left when a process ends goes to its recent
// samples, again and as of their times, so that weights add up to the total. A stratum without
// any is the run-time system's own, or nobody's.
//
// One bias is left: a heap check asks for what the longest of its paths takes. Code that gives
// most of that back finds nurseries full more often than it fills them.
//
// # Duty cycle
//
// A probe that would exceed the budget (a token bucket, package overhead) continuously is in
// place for windows only. A window begins at a random time, so its hits are a random choice of
// all, and each counts by the time from window to window divided by the window's length (the
// Horvitz-Thompson estimator), corrected by what the stratum really allocated. control.go
// chooses per probe: continuous while all such probes take at most maxContinuousShare of the
// budget, else windows, as long and as often as the bucket has tokens for them. Samples of
// full nurseries rest besides, for as long as keeps them and surveys within their part of the
// budget: the walk of a deep stack takes a hundred times as long as the count. Other frequent hits
// are thinned: the kernel walks the stack for one hit in so many, of large objects by size. Many processes with a budget
// each (own.go) have windows in turn, and those with few hits none.
package alloc
