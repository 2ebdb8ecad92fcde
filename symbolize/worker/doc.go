// Package worker symbolises in a child process that holds no privilege.
//
// Module files may be crafted to harm whoever parses them, and a capture often
// runs as root. So the parent opens the files, and a child (the same executable,
// started again; see Main) parses them as the invoking user, or as nobody where
// that is root, without capabilities or the means to regain any
// (no_new_privs), within limits of memory and time. What the child says is not
// trusted either: the parent takes only symbol tables, about the addresses it
// asked for, and checks every reference in them.
//
// Source files are read with the rights of the log's owner: by the child itself
// where it runs as the owner, by the parent on its behalf where the owner is
// root. Only files with a source file's name are read.
//
// A child that fails leaves what it had sent; what it had not resolved is tried
// once more by symbols alone.
package worker
