package declarations

import (
	"path"
	"strings"

	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// equivalents are the corruptions that leave every declaration true, so that no test can
// notice them. Those of a single kernel are in its source, as @equivalent lines. A
// corruption is listed only if it is equivalent by construction, whatever the kernel's
// code does; one that merely goes unnoticed is a gap in the tests.
var equivalents = []*decl.Equivalent{
	{Declaration: "*", Corruption: "round: *round(f32, *", Reason: "every operation yields an f32, which round(f32, …) does not change"},
	{Declaration: "*", Corruption: "shape: offset[0] 1 -> 2", Reason: "more bytes declared as read than are read: reads are contained"},
}

// equivalentsOf returns the @equivalent lines of a source of the library. It panics if they cannot be parsed: a test of
// package msl parses all, and [msl.Register] refuses such a source.
func equivalentsOf(file string) []*decl.Equivalent {
	tests, err := msl.Tests(file)
	if err != nil {
		panic(err)
	}
	return tests.Equivalents
}

// equivalent returns the entry by which the corruption m of an instance is equivalent, or nil.
func equivalent(in instance, m mutant) *decl.Equivalent {
	for _, list := range [][]*decl.Equivalent{equivalents, equivalentsOf(in.d.File)} {
		for _, e := range list {
			if f, err := path.Match(e.Declaration, in.String()); f && err == nil && glob(e.Corruption, m.String()) {
				return e
			}
		}
	}
	return nil
}

// glob matches text with a pattern in which * is any text and ? any byte.
func glob(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if len(text) < len(head) {
		return false
	}
	for i := range len(head) {
		if head[i] != '?' && head[i] != text[i] {
			return false
		}
	}
	text = text[len(head):]
	if !star {
		return text == ""
	}
	for i := 0; i <= len(text); i++ {
		if glob(rest, text[i:]) {
			return true
		}
	}
	return false
}
