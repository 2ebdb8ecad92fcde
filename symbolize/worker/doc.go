// Package worker symbolises in a child process that is confined.
//
// Module files may be crafted to attack their parser, and a capture often
// runs as root. So the parent opens the files, and a child of internal/sandbox parses
// them: with a uid of its own, without capabilities, and behind a filter that
// leaves it no file, socket or process to reach. The child's answers are not
// trusted either: the parent takes only symbol tables, about the addresses it
// asked for, and checks every reference in them.
//
// What the child needs of the file system it asks the parent for: source files, Core
// dumps, and indices of debug information. The parent answers with the rights of the
// profiled program's user, and only for what the module's files name (see answers). The
// names of kernel addresses are looked up by the parent; the child never sees
// /proc/kallsyms.
//
// A child that fails leaves what it had sent; what it had not resolved is tried
// once more by symbols alone.
package worker
