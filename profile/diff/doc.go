// Package diff compares two groups of runs of a program, element by element, and
// reports which differences are statistically significant.
//
// # What is compared
//
// A [Run] holds the figures of a selection of one log at one level, so filters and
// transforms apply to both sides. Elements are matched by name. Spans, whose names
// contain positions, are matched by the binding and the position in it; files and
// packages that moved are matched by their module and their name without version.
// The figures are weights in the event's unit per run, or with [Share] fractions of
// the run's total. The shares of one program depend on each other: if one grows, others
// shrink although their code has not changed.
//
// # The statistical test
//
// The unit of observation is the run. The samples of one run determine how precisely
// that run is measured, not how much runs differ from each other. One run per side is
// therefore not tested; it gets only an interval for the sampling noise.
//
// The statistic is Welch's t of the logarithms, because runs vary by factors. Its
// variance has the sampling noise as a lower bound, since a few runs may agree by
// chance or have no samples.
//
// With enough runs the p-values are those of a permutation test: the runs are
// reassigned ("dealt") to the two sides, in every way if there are few ways, else at
// random. Elements overlap, and there are many, so p-values are adjusted by the maxT
// procedure of Westfall & Young, "Resampling-Based Multiple Testing" (1993), in one step:
// the chance of one or more false verdicts is at most alpha, whatever the dependence between
// elements. Three runs per side can be dealt in 20 ways, so their permutations cannot reach
// p < 0.1. So few runs are tested by Welch's t with Holm's adjustment, which assumes that the
// logarithms are normally distributed.
//
// The largest statistic of all elements is also the test of the profile as a whole (Roy's
// union-intersection principle), and comes first: no element has a verdict unless it says
// that the profiles differ (Result.Whole). Intervals are of the same test, with the same
// critical value as the verdict: they leave out 0 if and only if there is one.
//
// A cost that went from one element to another of the same caller, whose own cost has not
// changed, is no regression: its verdict is [Moved].
//
// Elements below [MinShare] of all runs together are not tested. This choice does not
// depend on the sides, so it does not bias the tests.
package diff
