package columns

import "strings"

// QualifiedName returns the binding's name as a Haskell programmer writes it:
// "Module.binding".
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

// NearName returns the name shown for code of which only the preceding symbol is known.
// It differs from that symbol's own name, so that the two are not confused.
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

// isDescription reports whether a binding's name is a description of code without a name:
// "(local code)".
func isDescription(name string) bool {
	return strings.HasPrefix(name, "(") && strings.Contains(name, " ")
}
