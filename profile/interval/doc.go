// Package interval says how sure a share is that was estimated from samples: its 95 %
// confidence interval, and whether the order of two shares is within noise.
//
// # What the interval is of
//
// A share is the part of a run's weight (time, bytes, misses) that some code has. The
// interval holds what counting every nanosecond or byte of that run would have given, 95
// times in 100. It does not say how another run, with other input or on a busier machine,
// would differ: package diff compares runs.
//
// # The estimator
//
// A share p is a ratio of two sums of weights. Its variance is the larger of two estimates,
// both of the linearised ratio (Cochran, "Sampling Techniques", 3rd ed. 1977, §6.3):
//
//   - as if samples were independent: each has its own weight, so samples that weigh
//     several times more than others count for fewer. Of equal shares this is the effective
//     sample size (Σw)²/Σw² of Kish, "Survey Sampling" (1965), §11.7.
//   - by batches: the samples are cut into up to [Batches] runs that follow each other in
//     time, and the variance is half the mean square of the differences of neighbouring
//     batches (Wolter, "Introduction to Variance Estimation", 2nd ed. 2007, §8.2, estimator
//     v2; von Neumann 1941). Samples that are neighbours in time resemble each other, which
//     makes the first estimate too small; a batch holds most of such correlation. Phases of
//     many batches are the program's own course, not noise: sampling at regular intervals
//     meets each for as long as it lasts, and differences of neighbours leave them out,
//     which the variance of batches about their mean does not.
//
// The variance makes an effective number of samples, n = p(1−p)/variance, with Korn &
// Graubard's correction for the degrees of freedom ("Confidence intervals for proportions
// with small expected number of positive counts estimated from survey data", Survey
// Methodology 24, 1998), and the interval is Clopper & Pearson's (Biometrika 26, 1934) of np
// successes in n trials. It stays within 0 and 1, is wider on the side where there is room,
// and holds for counts of one or two. A share of zero has the upper bound 1 − 0.05^(1/n),
// about 3/n: the rule of three (Hanley & Lippman-Hand, JAMA 249, 1983).
//
// [Ratio] does the same for sums over blocks of a nursery, of each of which a part is counted.
//
// Where few clusters of samples say most, as windows of a probe do, [Clusters] has the clusters' variance instead.
//
// # Order
//
// Rows of a profile overlap: a sample counts for all elements that its code is due to. What
// two rows have in common cannot order them, so the test looks at the weight in which they
// differ: how much of it does the first row have? If the interval of that share holds one
// half, the order is within noise ([Whole.Ordered]).
//
// How often the intervals hold on programs with a known answer is in docs/intervals.md.
//
// # Intervals in a new view
//
// A row of a view is a set of stack sites (profile.Selection is sums by site). Collect the
// sites of each row that is shown, and ask the selection's batches:
//
//	b := selection.Batched()
//	sure := b.List(sitesOfRow) // one profile.Sure a row, in the order in which they are listed
//
// Rows of a tree are added up from the leaves: see profile/stacks. Show them by
// internal/format (PlusMinus), and begin the list by printer.Printer.Few. In JSON a row has
// low, high and effective_samples beside its share: see docs/json.md.
package interval
