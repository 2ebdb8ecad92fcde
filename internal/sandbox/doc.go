// Package sandbox parses hostile bytes in a confined child process.
//
// A child is the same executable, started again (see Main). It inherits one socket, and
// /dev/null as its standard streams. It confines itself before it is given anything:
//
//   - it is not dumpable, so that no process of its user traces it, reads its memory or
//     takes its descriptors;
//   - where the parent is root, its uid and gid belong to nobody else on the host;
//   - it has no capability, no supplementary group, and no way to regain privilege;
//   - its memory and the size of files that it writes are limited;
//   - a seccomp filter on all its threads leaves it memory, threads, and what it does with
//     descriptors that it has. It opens no file, makes no socket, starts no program and
//     sends no signal.
//
// The filter of a child that speaks to servers (Config.Connects) lets it make sockets of IP, and read files that everybody
// may read; all else holds.
//
// Then it reports that it is ready, and the parent sends descriptors over the socket. If the
// parent is not root, the child keeps the parent's uid; the rest is the same. There is a
// filter for amd64 and arm64.
package sandbox
