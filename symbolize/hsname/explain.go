package hsname

import "strings"

// Origin says which source binding a name was made from.
type Origin struct {
	// Source is the source binding: "heavy" for "$wheavy". For names that GHC
	// made of nothing in particular ("lvl5") it is empty.
	Source string
	// Words say what it is, to be read before Source: "worker of". Empty when
	// the name is the source binding itself.
	Words string
	// Instance is set when Source lies in an instance; it is GHC's name for
	// the class and type run together: "HasAreaShape". Source is then the method,
	// or empty for the instance as a whole.
	Instance string
	// Path is the local name inside Source where the name has one: "go" for
	// "heavy_$sgo".
	Path string
}

// made lists the prefixes of names that GHC makes, in words. The longest
// prefix that fits is taken.
var made = []struct{ prefix, words string }{
	{"$dm", "default method"},
	{"$tc'", "run-time type of constructor"},
	{"$tc", "run-time type of"},
	{"$con2tag_", "constructor numbers of"},
	{"$tag2con_", "constructors by number of"},
	{"$maxtag", "number of constructors of"},
	{"$poly_", "polymorphic local function of"},
	{"$w", "worker of"},
	{"$W", "wrapper of constructor"},
	{"$s", "specialisation of"},
	{"$m", "matcher of pattern"},
	{"$b", "builder of pattern"},
	{"$l", "lambda-lifted function of"},
	{"$j", "join point of"},
	{"$e", "expanded newtype wrapper of"},
	{"$g", "generic default of"},
	{"$r", "record selector"},
	{"poly_", "polymorphic local function of"},
}

// Explain says what a decoded name stands for. Names that a programmer wrote
// come back as Source alone.
func Explain(name string) Origin {
	switch name {
	case "$trModule":
		return Origin{Words: "module's run-time identity"}
	case "lvl", "sat", "ds", "wild", "fail", "$krep":
		return Origin{Words: anonymous(name)}
	}
	if base := strings.TrimRight(name, "0123456789"); base != name {
		if w := anonymous(base); w != "" {
			return Origin{Words: w}
		}
	}
	// "outer_$sinner": inner is local to outer, or a method of instance outer.
	if i := strings.Index(name, "_$"); i > 0 {
		outer, inner := name[:i], name[i+1:]
		if instance, ok := strings.CutPrefix(outer, "$f"); ok && instance != "" {
			return method(instance, inner)
		}
		return local(Explain(outer), inner)
	}
	if rest, ok := strings.CutPrefix(name, "$f"); ok && rest != "" {
		words := "dictionary of"
		if base := strings.TrimRight(rest, "0123456789"); base != rest && base != "" {
			rest, words = base, "part of"
		}
		return Origin{Words: words, Instance: rest}
	}
	if rest, ok := strings.CutPrefix(name, "$c"); ok && rest != "" && !strings.HasPrefix(rest, "on2tag_") {
		return Origin{Source: rest, Words: "instance method"}
	}
	if rest, ok := strings.CutPrefix(name, "$p"); ok {
		if class := strings.TrimLeft(rest, "0123456789"); class != rest && class != "" {
			return Origin{Source: class, Words: "superclass of"}
		}
	}
	for _, m := range made {
		if rest, ok := strings.CutPrefix(name, m.prefix); ok && rest != "" {
			return wrap(m.words, Explain(rest))
		}
	}
	return Origin{Source: name}
}

// anonymous names what GHC floated out or introduced without a source name.
func anonymous(base string) string {
	switch base {
	case "lvl":
		return "constant expression floated to the top"
	case "sat":
		return "subexpression without a name"
	case "ds", "wild":
		return "pattern match's variable"
	case "fail":
		return "pattern match's failure branch"
	case "$krep":
		return "run-time type"
	}
	return ""
}

// wrap puts words around an origin: worker of (a) specialisation of foo.
func wrap(words string, o Origin) Origin {
	switch {
	case o.Words == "":
		o.Words = words
	case o.Source == "" && o.Instance == "":
		o.Words = strings.TrimSuffix(words, " of") + ": " + o.Words
	default:
		o.Words = words + " the " + o.Words
	}
	return o
}

// numberedMethods are methods of common classes whose names end in a digit.
var numberedMethods = map[string]bool{
	"liftA2": true, "foldl1": true, "foldr1": true, "log1p": true, "expm1": true, "atan2": true,
	"liftEq2": true, "liftCompare2": true, "liftShowsPrec2": true, "liftReadsPrec2": true,
}

// methodName takes off the number that GHC puts after a method's name for a
// part that it floated out of it: "compare1".
func methodName(name string) string {
	if base := strings.TrimRight(name, "0123456789"); base != "" && !numberedMethods[name] {
		return base
	}
	return name
}

// Specialised reports whether the name is of code that GHC made for particular
// types.
func (o *Origin) Specialised() bool { return strings.Contains(o.Words, "specialisation") }

// method explains a name below an instance: "$cshow", "$s$cshow", "$sgo1".
func method(instance, inner string) Origin {
	var words []string
	rest := inner
	for {
		switch {
		case strings.HasPrefix(rest, "$c") && len(rest) > 2:
			if len(words) == 0 {
				words = append(words, "code of")
			}
			return Origin{Source: methodName(rest[2:]), Instance: instance, Words: ofChain(words)}
		case strings.HasPrefix(rest, "$s") && len(rest) > 2:
			words, rest = append(words, "specialisation of"), rest[2:]
		case strings.HasPrefix(rest, "$w") && len(rest) > 2:
			words, rest = append(words, "worker of"), rest[2:]
		default:
			o := Explain(rest)
			path := o.Source
			if path == "" {
				path = rest
			}
			words = append(words, path+", local to")
			return Origin{Instance: instance, Path: path, Words: ofChain(words)}
		}
	}
}

func local(outer Origin, inner string) Origin {
	in := Explain(inner)
	name := in.Source
	if name == "" {
		name = inner
	}
	words := name + ", local to"
	if in.Words != "" && in.Source != "" {
		words = in.Words + " " + words
	}
	o := wrap(words, outer)
	o.Path = name
	return o
}

func ofChain(words []string) string { return strings.Join(words, " the ") }
