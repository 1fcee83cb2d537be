package prove_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
)

// The declarations of a source that a program has registered are believed only by a proof
// that is given the source, which names them as an assumption.
func TestChecksRegisteredSources(t *testing.T) {
	require.NoError(t, msl.Register("thrice.metal", `
// @kernel   thrice_float32
// @arg 0 x  device f32[n] read
// @arg 1 y  device f32[n] write
// @threads  n, 1, 1
// @group    _, _, _
// @term     y[i] = round(f32, x[i] * 3.0)
`))
	s := record.New("g")
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	s.Dispatch(s.Function("thrice_float32")).Buffer(0, x).Buffer(1, y).Threads(record.Size(4), [3]uint32{4, 1, 1})
	s.Barrier() // against the next replay
	before, err := s.Graph()
	require.NoError(t, err)
	check := func(after *ir.Graph, o prove.Options) *prove.Result {
		return prove.Check(context.Background(), before, after, o)
	}
	generated := func(text string) *ir.Graph {
		g := before.Clone()
		k := ir.Kernel{Library: ir.Library{Kind: ir.Generated}, Function: text}
		ds, err := msl.DeclarationsOf(&k)
		require.NoError(t, err)
		g.Kernels[0] = ds[0].Kernel("k")
		return g
	}
	const assumption = "kernels do what thrice.metal declares: thrice_float32"
	same, other := generated("out0[i] = round(f32, in0[i] * 3.0)"), generated("out0[i] = round(f32, in0[i] * 4.0)")
	for name, after := range map[string]*ir.Graph{"itself": before.Clone(), "generated": same} {
		r := check(after, prove.Options{Sources: []string{"thrice.metal", "unused.metal"}})
		require.Equal(t, prove.Proved, r.Verdict, "%s: %s", name, r)
		require.Equal(t, []string{assumption}, r.Assumptions)
		r = check(after, prove.Options{Sources: []string{"thrice.metal"}, Strict: true})
		require.Equal(t, prove.CannotTell, r.Verdict)
		require.Equal(t, "only given that "+assumption, r.Findings[0].Text)
		r = check(after, prove.Options{Sources: []string{"unused.metal"}})
		require.Equal(t, prove.CannotTell, r.Verdict)
		require.Contains(t, r.Findings[0].Text, "runs kernel thrice_float32, which is declared by thrice.metal, a source that a program has registered")
	}
	require.Equal(t, prove.Refused, check(other, prove.Options{Sources: []string{"thrice.metal"}}).Verdict, "the declaration says what it computes")

	// A kernel that only the graph after runs is asked about, too.
	r := prove.Check(context.Background(), same, before, prove.Options{})
	require.Equal(t, prove.CannotTell, r.Verdict)
	r = prove.Check(context.Background(), same, before, prove.Options{Sources: []string{"thrice.metal"}})
	require.Equal(t, prove.Proved, r.Verdict, "%s", r)
	require.Empty(t, prove.Check(context.Background(), same, same, prove.Options{Sources: []string{"thrice.metal"}}).Assumptions)
}

// Declarations of effects say what kernels of another file touch, and nothing of what they
// compute: the proof names them, orders their dispatches by them, and fuses none.
func TestChecksDeclarationsOfEffects(t *testing.T) {
	const digest = "aa112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	require.NoError(t, msl.Register("seen.effects", "// @library metallib \"seen.metallib\" sha256 "+digest+`
// @kernel   half
// @effects
// @arg 0 x  device f32[n at n] read
// @arg 1 y  device f32[n] write
// @threads  n, 1, 1
// @group    _, _, _
`))
	parse := func(commands string) *ir.Graph {
		m, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(`mlxt 1
graph g {
  memory %x input 64
  memory %s scratch 64
  memory %y output 64
  kernel @half metallib "seen.metallib" sha256 `+digest+` "half" args(0 x: device f32 read, 1 y: device f32 readwrite)
`+commands+`
}`))
		require.NoError(t, err)
		return m.Graphs[0]
	}
	before := parse(`
  #0 @half (x = %x[0:64], y = %y[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier
  #1 @half (x = %x[0:64], y = %y[32:64]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier`)
	given := prove.Options{Sources: []string{"seen.effects"}}
	apart := parse(`
  #0 @half (x = %x[0:64], y = %y[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  #1 @half (x = %x[0:64], y = %y[32:64]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier`)
	r := prove.Check(context.Background(), before, apart, given)
	require.Equal(t, prove.Proved, r.Verdict, "%s", r)
	require.Equal(t, []string{"kernels touch what seen.effects declares: half"}, r.Assumptions)
	require.Equal(t, prove.CannotTell, prove.Check(context.Background(), before, apart, prove.Options{}).Verdict, "it was not given the declarations")
	strict := given
	strict.Strict = true
	require.Equal(t, prove.CannotTell, prove.Check(context.Background(), before, apart, strict).Verdict)
	other := parse(`
  #0 @half (x = %x[0:64], y = %y[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  #1 @half (x = %y[0:64], y = %y[32:64]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier`)
	require.NotEqual(t, prove.Proved, prove.Check(context.Background(), before, other, given).Verdict)

	// Only the second half of s is read, so only commands that write it must come first.
	chain := parse(`
  #0 @half (x = %x[0:64], y = %s[32:64]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier
  #1 @half (x = %x[0:64], y = %s[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier
  #2 @half (x = %s[0:64], y = %y[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier`)
	swapped := func(lines string) prove.Verdict {
		return prove.Check(context.Background(), chain, parse(lines), given).Verdict
	}
	require.Equal(t, prove.Proved, swapped(`
  #0 @half (x = %x[0:64], y = %s[32:64]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier
  #2 @half (x = %s[0:64], y = %y[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier`), "nobody reads what #1 writes")
	require.Equal(t, prove.Refused, swapped(`
  #1 @half (x = %x[0:64], y = %s[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  #0 @half (x = %x[0:64], y = %s[32:64]) grid threads [8, 1, 1] of [8, 1, 1]
  #2 @half (x = %s[0:64], y = %y[0:32]) grid threads [8, 1, 1] of [8, 1, 1]
  barrier`))
}
