package curry

import "strings"

// methods are those of the class NonDet whose instances make a value that stands for no constructor of the program.
var methods = map[string]Role{"choiceCons": Choice, "choicesCons": Choices, "failCons": Failure, "guardCons": Guard}

// Makes says which of the constructors that KiCS2 adds to types a binding's code makes: "Bool (choice)" for the constructor's own
// function, "Choice_C_Bool" or as [Function] decodes it, and for the method of the type's instance that the run-time system makes it
// by, "choiceCons (instance NonDet C_Bool)" or in GHC's symbols "$fNonDetC_Bool_$cchoiceCons". It reports false for other code.
func Makes(name string) (constructor string, role Role, ok bool) {
	if before, ok := strings.CutSuffix(name, ")"); ok {
		for r := Choice; r <= Guard; r++ {
			if own, ok := strings.CutSuffix(before, " ("+r.String()); ok && own != "" && !strings.ContainsRune(own, ' ') {
				return name, r, true
			}
		}
	}
	method, instance, is := strings.Cut(name, " (instance NonDet")
	if !is {
		if instance, is = strings.CutPrefix(name, "$fNonDet"); is {
			at := strings.LastIndex(instance, "_$c")
			if at < 0 {
				return "", Value, false
			}
			instance, method = instance[:at], instance[at+len("_$c"):]
		}
	}
	if !is {
		own, role, ok := Constructor(name)
		if !ok || role == Value || strings.ContainsAny(own, " .") {
			return "", Value, false
		}
		return own + " (" + role.String() + ")", role, true
	}
	role, ok = methods[method]
	of, _, _ := strings.Cut(strings.Trim(instance, " ()"), " ")
	if !ok || of == "" {
		return "", Value, false
	}
	of, _ = identifier(of)
	return of + " (" + role.String() + ")", role, true
}
