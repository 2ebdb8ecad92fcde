// Package gccode finds the garbage collector's code in files without symbols.
//
// Stripping leaves where each C function begins and ends (.eh_frame), the strings it refers to,
// and the calls between functions. The collector's files have messages of their own ("scavenge:
// unimplemented/strange closure type"), and are closed: what they call evacuates, and nothing
// else in the run-time system calls that. So the collector is
//
//   - the functions that refer to such a message, and those that refer to evacuate;
//   - what these alone refer to;
//   - what refers to any of these: the collector's entries, as GarbageCollect. Who refers to an
//     entry is the scheduler, and is left out;
//   - the few functions that lie between two of these, as the linker leaves each file's together;
//   - what these alone refer to and refers to them in turn;
//   - their spin locks: functions that pause, and to which mostly these refer.
//
// A function of which others make use too, as the allocator of blocks, is none of them: neither
// is it the collector's in a file with symbols.
//
// Sources: rts/sm/{Evac,Scav,GC,GCUtils,MarkWeak,Compact,NonMoving*}.c, rts/SpinLock.c of GHC 8.10
// to 9.14.
package gccode
