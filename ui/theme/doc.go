// Package theme turns one palette into every style the viewer draws with.
//
// A palette names hues by what they mean (heat, selection, a cause), never by
// where they are used; all themes come out of the same function, so a screen
// that reads well in one reads well in all. Heat and causes always carry a
// digit, glyph or letter too: colour is never the only bearer of a fact, and
// the theme for NO_COLOR keeps nothing but bold.
package theme
