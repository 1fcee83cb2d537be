package meaning_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/ir/mlxt"
)

const foreign = `  kernel @f metallib "m.metallib" sha256 0102030000000000000000000000000000000000000000000000000000000000 "f" args(0 a: device u32 read, 1 o: device u32 write)
`

// TestOf tests what is proved, what is unsure and what is assumed. Package hazard
// compares the judgement itself with every order of small graphs.
func TestOf(t *testing.T) {
	const memories = "  memory %x input 16\n  memory %s scratch 16\n  memory %y output 16\n"
	const dispatch = " grid threads [4, 1, 1] of [4, 1, 1]"
	for _, c := range []struct {
		name, head, body         string
		faults, unsure, assumed  string // parts of the only one, "" for none
		refused, refusedIfStrict bool
	}{
		{name: "ordered", body: "#0 copy %x -> %s\nbarrier\n#1 copy %s -> %y\n"},
		{name: "race", body: "#0 copy %x -> %s\n#1 copy %s -> %y\n", refused: true, refusedIfStrict: true,
			faults: "#0 copy and #1 copy both touch %s[0:16] and nothing orders them (the first writes, the second reads)"},
		{name: "serial", head: "serial ", body: "#0 copy %x -> %s\n#1 copy %s -> %y\n"},
		{name: "race on bytes that nobody sees", body: "#0 copy %x -> %s\n#1 fill %s[0:4] 1\n#2 copy %x -> %y\n"},
		{name: "undefined", body: "#0 copy %s -> %y\n", refused: true, refusedIfStrict: true,
			faults: "#0 copy reads %s[0:16], which nothing wrote in this replay"},
		{name: "undefined bytes that nobody sees", body: "#0 copy %y -> %s\nbarrier\n#1 copy %x -> %y\n"},
		{name: "unknown effects beside another", body: "#0 copy %x -> %s\n#1 @f (a = %x, o = %y)" + dispatch + "\n", refusedIfStrict: true,
			assumed: "the recording is race-free at #0,#1"},
		{name: "race for some params", head: "", body: "#0 fill %y[0:16] 0\nbarrier\n#1 fill %y[4*$p:4*$p + 4] 1\n#2 fill %y[0:4] 2\n", refused: true, refusedIfStrict: true,
			faults: "%y[0:4] and nothing orders them (both write, with $p = 0)"},
		{name: "undefined bytes that a write covers for all params", body: "#0 copy %s[0:4*$p + 4] -> %y[0:4*$p + 4]\nbarrier\n#1 copy %x[0:4*$p + 4] -> %y[0:4*$p + 4]\n"},
		{name: "undefined bytes that a write covers for some params", body: "#0 copy %s[0:8] -> %y[0:8]\nbarrier\n#1 copy %x[0:4*$p] -> %y[0:4*$p]\n", refused: true, refusedIfStrict: true,
			faults: "with $p = 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "mlxt 1\ngraph g " + c.head + "{\n  param $p u32 in [0, 3]\n" + memories + foreign + c.body + "}\n"
			m, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(text))
			require.NoError(t, err)
			r, err := meaning.Of(context.Background(), m.Graphs[0])
			require.NoError(t, err)
			var faults []string
			for _, f := range r.Faults {
				faults = append(faults, f.Text)
			}
			for _, x := range []struct {
				want string
				got  []string
			}{{c.faults, faults}, {c.unsure, r.Unsure}, {c.assumed, r.Assumed}} {
				if x.want == "" {
					assert.Empty(t, x.got)
				} else if assert.Len(t, x.got, 1) {
					assert.Contains(t, x.got[0], x.want)
				}
			}
			assert.Equal(t, c.refused, r.Err() != nil)
			assert.Equal(t, c.refusedIfStrict, r.Strict() != nil)
			if c.refused {
				assert.ErrorContains(t, r.Err(), "graph g has no one meaning")
				assert.ErrorContains(t, r.Err(), "write") // the hint says what to do
			}
		})
	}
}
