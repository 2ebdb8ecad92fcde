// Package uprobe puts probes into programs, and tells what there is to know before: whether
// this kernel takes many at once, and why it takes none.
package uprobe
