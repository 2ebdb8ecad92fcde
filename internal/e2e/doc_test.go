// Package e2e tests the two commands as users run them: real binaries, real
// Haskell programs, the real kernel. It needs root.
//
// Statistics are checked by binomial bounds with an error probability of 1e-6, over the
// samples that were taken; nothing is timed, and nothing sleeps.
package e2e
