// Package e2e tests the two commands as users run them: real binaries, real
// Haskell programs, the real kernel. It needs root.
//
// Statistics are judged by binomial bounds at a chance of 1e-6 to be wrong, over
// the samples that were taken; nothing is timed, and nothing waits for time to pass.
package e2e
