package columns

import "strings"

// QualifiedName is the binding as a Haskell programmer writes it: "Module.binding".
func (b *Binding) QualifiedName() string {
	name := b.Name
	if name == "" {
		name = b.Symbol
	}
	switch {
	case b.Module == "":
		return name
	case name == "":
		return b.Module + ".?"
	case isDescription(name):
		return b.Module + " " + name
	default:
		return b.Module + "." + name
	}
}

// NearName names code of which only the symbol before it is known. It must not
// be taken for that symbol.
func (b *Binding) NearName() string {
	name := b.Name
	if name == "" {
		name = b.Symbol
	}
	switch {
	case name == "":
		return b.Module + " (unnamed)"
	case b.Module != "" && isDescription(name):
		return b.Module + " " + name
	case b.Module == "" && isDescription(name):
		return name
	case b.Module == "":
		return "(near " + name + ")"
	default:
		return b.Module + " (near " + name + ")"
	}
}

// isDescription reports whether a binding's name is no name but says what the
// code is: "(local code)".
func isDescription(name string) bool {
	return strings.HasPrefix(name, "(") && strings.Contains(name, " ")
}
