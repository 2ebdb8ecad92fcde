// Package nursery samples what is allocated, by closure.
//
// When a collection begins, the nurseries hold all small objects that were allocated since the
// collection before, one after another, dead or alive. A probe there copies one block of 4 KiB,
// chosen at random among all places of all capabilities' nurseries; the agent walks it (package
// heap) and writes into the log how many closures of each info table it holds, and their bytes.
// What closures hold is not kept.
//
// Each block that is filled is as likely chosen as any other, so samples have none of the bias
// of heap checks, by which package alloc sees which code allocates: a check that asks for much
// on a path that is seldom taken draws more samples than its code deserves. Large objects are
// not in the nursery.
//
// Thunks that were evaluated before the collection are indirections by then; what code they had
// is not known, so they are a band of their own.
package nursery
