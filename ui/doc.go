// Package ui is ccview's terminal viewer.
//
// [Run] loads a log off the event loop and shows it until the user quits. The
// event loop (App) owns all state; keys come through [keymap]'s one table,
// screens live in [view], what they show is computed by [model] in the
// background, one request at a time, always the latest. Drawing is pure: cells
// into a canvas, in rectangles from [layout], with styles from [theme]. Nothing
// from a log reaches the terminal but through [safe].
package ui
