// Package closures says what a program allocated, by closure: constructors, thunks and
// functions with the place they were written, and the run-time system's own types.
//
// It rests on blocks of nurseries that were chosen at random when collections began, each as
// likely as the others (agent/nursery): the part of their bytes that closures of a kind have is
// an estimate of the part of all small objects. A block stands for Places blocks, the inverse of
// the chance with which it was chosen (Horvitz & Thompson 1952); shares are ratios of two such
// sums.
//
// # Intervals
//
// The unit that is sampled is a block, whose closures resemble each other, and blocks that
// follow each other do. The variance is that of the linearised ratio (Cochran, "Sampling
// Techniques", 3rd ed. 1977, §6.3), the larger one of two estimates: as if blocks were
// independent, and from the differences of neighbouring batches of blocks (Wolter,
// "Introduction to Variance Estimation", 2nd ed. 2007, §8.2). It makes an effective number of
// samples, for which the interval is Clopper and Pearson's, as Korn and Graubard have it
// (Survey Methodology 24, 1998).
package closures
