// Package view holds the viewer's screens, one file each, and the panes they
// are made of. A screen gets actions, never keys; what it cannot do it says why.
// It draws what [model.Data] holds and asks for other data by changing the
// [Context]; it never queries the profile itself, so drawing never waits.
package view
