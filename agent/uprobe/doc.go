// Package uprobe attaches uprobes to processes (Put), finds out whether the kernel attaches many
// with one link (Multi), and explains why it refuses one (Error).
package uprobe
