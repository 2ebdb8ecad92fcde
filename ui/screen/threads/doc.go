// Package threads shows what every Haskell thread of a process did at a moment, and who waited for
// whom.
package threads
