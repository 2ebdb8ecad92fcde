package ghc

import (
	"regexp"
	"strings"
	"sync"
)

// Library is what the name of one of GHC's shared libraries says.
type Library struct {
	Unit    string // of the package: "base-4.15.1.0"
	Version string // of GHC
	RTS     bool   // the run-time system
	Way     Way    // of the run-time system
}

// libraryName matches libHSrts_thr-ghc9.0.2.so, from 9.8 on with the run-time system's own
// version before the way: libHSrts-1.0.2_thr-ghc9.8.1.so; and libHSbase-4.15.1.0-ghc9.0.2.so.
var libraryName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^libHS(?:(rts(?:-[0-9.]+)?((?:_[a-z]+)*))|(.+))-ghc([0-9]+(?:\.[0-9]+)+)\.so$`)
})

// ParseLibrary takes apart a shared library's file name; false if it is not one of GHC's.
func ParseLibrary(name string) (Library, bool) {
	m := libraryName().FindStringSubmatch(name)
	if m == nil {
		return Library{}, false
	}
	l := Library{Unit: m[1] + m[3], Version: m[4], RTS: m[1] != ""}
	if l.RTS {
		l.Way = Way("rts" + m[2] + "_dyn")
	}
	return l, true
}

var comment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\x00)GHC ([0-9]+(?:\.[0-9]+)+)`) })

// CommentVersion finds the compiler's version in a section .comment, where GHC's assembly
// code leaves it ("GHC 9.0.2"). It is empty if there is none.
func CommentVersion(section []byte) string {
	if m := comment().FindSubmatch(section); m != nil {
		return string(m[1])
	}
	return ""
}

// ProducerVersion gives the compiler's version out of a unit's DW_AT_producer; it is empty
// for other compilers' units.
func ProducerVersion(producer string) string {
	const mark = "Glasgow Haskell Compilation System "
	if i := strings.LastIndex(producer, mark); i >= 0 {
		return producer[i+len(mark):]
	}
	return ""
}

// What the run-time system has among its read-only data.
var (
	// InfoMarker is printed by +RTS --info (rts/RtsUtils.c, printRtsInfo). The
	// version's string lies near it.
	InfoMarker = []byte("GHC RTS\", \"YES\")")
	// WayString matches RtsWay with the bytes around it; its group is the way.
	WayString = regexp.MustCompile(`\x00(rts_(?:v|p|l|dyn|thr|debug)(?:_(?:p|l|dyn|thr|debug))*)\x00`)
	// VersionString matches what may be the version in the same manner.
	VersionString = regexp.MustCompile(`\x00([89]\.[0-9]{1,2}\.[0-9]{1,8}(?:\.[0-9]{1,8})?|1[0-9]\.[0-9]{1,2}\.[0-9]{1,8})\x00`)
)

// ProvenanceSuffix ends the symbols of a module's part of the info table map;
// ProvenanceSuffix92 does those of each entry in 9.2.
const (
	ProvenanceSuffix   = "_ipe_buf"
	ProvenanceSuffix92 = "_info_ipe"
)
