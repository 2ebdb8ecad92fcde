// Package uprobe tells what there is to know of probes in programs before one is put
// there: how many this kernel takes at once, and why it takes none.
package uprobe
