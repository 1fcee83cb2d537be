package declarations

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{{"a*c", "abbc", true}, {"a*c", "ac", true}, {"a*c", "acd", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"*", "", true}, {"", "a", false}, {"*b*d", "abcd", true}, {"a[0]*", "a[0] x", true}} {
		assert.Equal(t, c.want, glob(c.pattern, c.text), "%s %s", c.pattern, c.text)
	}
}

// TestMutantsAreDifferent: each mutant names its change, and differs from the original.
func TestMutantsAreDifferent(t *testing.T) {
	family := func(f string) string { return msl.Declarations(f)[0].Family() }
	for _, f := range sample.Kernels(t, t.Name(), msl.Functions(), family) {
		for _, d := range msl.Declarations(f) {
			before := describe(d)
			for _, m := range mutants(d) {
				assert.NotEqual(t, before, describe(m.d), "%s: %s", f, m)
			}
			assert.Equal(t, before, describe(d), "a mutant of %s changed the declaration itself", f)
		}
	}
}

// describe returns everything that mutants change, as text.
func describe(d *decl.Decl) string {
	var b strings.Builder
	fmt.Fprintln(&b, d.Constants, d.Inplace, d.Requires, d.Group)
	for _, a := range d.Args {
		fmt.Fprintln(&b, a.Slot, a.Name, a.Mode, a.Shape, a.Strides)
	}
	for _, g := range []*decl.Grid{d.Groups, d.Threads} {
		if g != nil {
			fmt.Fprintln(&b, *g)
		}
	}
	for _, l := range d.Lets {
		fmt.Fprintln(&b, l.Symbol, l.Value)
	}
	for _, w := range d.Wheres {
		fmt.Fprintln(&b, w.Name, w.Body)
	}
	for _, r := range d.Results {
		fmt.Fprintln(&b, r.Arg, r.Body)
	}
	return b.String()
}
