// Package widget draws the viewer's parts into a canvas of cells.
//
// A widget is a plain struct of what to show; Draw puts it into a rectangle
// and never beyond. Lists and sources hold any number of rows and touch only
// those on screen. Text from a log passes through [safe] here, at the last
// step, so that no widget can forget it.
package widget
