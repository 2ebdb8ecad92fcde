// Package ui is ccview's terminal viewer.
//
// [Run] loads a log beside the event loop and shows it until the user quits. The
// event loop (App) owns all state. It looks keys up in one table ([keymap]) and
// hands actions to the screen that is shown ([screen]); the list of screens is in
// screens.go. What a screen shows is computed by [model] in the background, one
// query at a time, always the latest. Drawing is pure: cells into a canvas, in
// rectangles from [layout], with styles from [theme]. Text of a log reaches the
// terminal only as printable characters.
package ui
