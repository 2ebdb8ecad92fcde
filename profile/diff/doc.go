// Package diff compares two groups of runs of a program, element by element, and
// tells which differences the runs bear out.
//
// # What is compared
//
// A [Run] holds one log's figures at one level, as a selection of it gives them,
// so every transform holds for both sides. Elements are matched by name. Where
// names hold positions (spans) they are matched by the binding and the place in
// it, and files and packages that moved by their module and name without version.
// The figures are weights in the event's unit a run, or with [Share] fractions of
// the run's total. Shares of one program are tied together: where one grows,
// others shrink without having changed.
//
// # How it is tested
//
// The unit of observation is the run. Samples of one run say how precisely that
// run is known, not how far the next one will lie from it, so one run a side gets
// no test, only an interval for the sampling noise.
//
// The statistic is Welch's t of the logarithms, for runs vary by factors. Its
// variance is never taken to be lower than the sampling noise: few runs may agree
// by chance, or at no samples.
//
// With enough runs the p-values are those of a permutation test: the runs are
// dealt to the two sides anew, in every way if these are few. Elements overlap, and
// there are many, so p-values are adjusted by the step-down maxT procedure of
// Westfall & Young, "Resampling-Based Multiple Testing" (1993), algorithm 2.8: the
// chance of one or more false verdicts is at most alpha, whatever the dependence
// between elements. Three runs a side can be dealt in 20 ways, so their
// permutations cannot show p < 0.1; such few runs are tested by Welch's t with
// Holm's adjustment instead, which assumes that the logarithms vary normally.
//
// Elements below [MinShare] of all runs together are not tested; that does not look
// at the sides, so it does not bias what is.
package diff
