package profile

import (
	"strings"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// bytecodeElement is the element of GHC's interpreter: of its own code, and of the frames by which it waits for compiled code
// (RET_BCO). Which function of the interpreted program it is is not known.
const bytecodeElement = "(bytecode)"

// interprets reports whether a binding is the interpreter's: rts/Interpreter.c, and in rts/StgMiscClosures.cmm the
// frames of bytecode that compiled code returns to, and the code that gives control to the interpreter.
func (p *Profile) interprets(owner columns.BindingID, c eventlog.Category) bool {
	if owner == 0 || c == eventlog.CategoryHaskell {
		return false
	}
	name := p.Symbols.Bindings[owner].Name
	return name == "interpretBCO" || strings.HasPrefix(name, "stg_ctoi_") || strings.HasPrefix(name, "stg_apply_interp")
}
