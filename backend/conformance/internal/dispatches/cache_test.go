package dispatches

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// TestCache: msl.Cache returns for every dispatch, also for refused ones, the same
// results and errors as without a cache. Each declaration's random dispatches, and
// variants of them with one change, go through one cache. If a value is moved to
// argument memory, nothing else changes.
func TestCache(t *testing.T) {
	sample.Seldom(t)
	const each, variants = 2, 12
	refused, accepted, overlaps, moved := 0, 0, 0, 0
	for _, f := range sampled(t) {
		for i, d := range msl.Declarations(f) {
			for k := range each {
				r := rand.New(rand.NewPCG(SeedOf(f)^0xcac4e, uint64(100*i+k)))
				x, err := random(d, r, false)
				require.NoError(t, err)
				g := x.graph
				// Room for views that move, and an alias for them to move to.
				for m := range g.Memories {
					g.Memories[m].Size += 1 << 16
				}
				root := ir.MemID(r.IntN(len(g.Memories)))
				g.Memories = append(g.Memories, ir.Memory{Name: "alias", Kind: g.Memories[root].Kind, Size: 1 << 15, Alias: root, AliasOff: int64(r.IntN(64))})
				// Another kernel with the same arguments.
				other := g.Kernels[0]
				other.Name, other.Library = "other", ir.Library{Kind: ir.SourceFile, Path: "k.metal"}
				g.Kernels = append(g.Kernels, other)
				inArguments := argumentMemory(g, x.node)
				c := msl.NewCache(g)
				for v := range variants {
					n := ir.CloneNode(x.node).(*ir.Dispatch)
					n.ID = ir.ID(v)
					for range r.IntN(3) {
						vary(n, g, r)
					}
					inline, inlineErr := msl.Describe(g, n)
					for i := range n.Bindings {
						if view, ok := inArguments[string(n.Bindings[i].Bytes)]; ok && n.Bindings[i].Kind == ir.BindBytes && r.IntN(2) == 0 {
							n.Bindings[i] = ir.BufferArg(n.Bindings[i].Slot, view)
							moved++
						}
					}
					before := ir.CloneNode(n).(*ir.Dispatch)
					want, wantErr := msl.Describe(g, n)
					require.Equal(t, message(inlineErr), message(wantErr))
					require.True(t, inline.Equal(want))
					got, gotErr := c.Describe(n)
					require.Equal(t, message(wantErr), message(gotErr), "%s: %s", f, x)
					require.True(t, want.Equal(got), "%s: %s: %v, cached %v", f, x, want, got)
					compareInstances(t, c, g, n)
					require.Empty(t, cmp.Diff(before, n, cmp.Comparer(ir.Affine.Equal)))
					switch {
					case wantErr == nil:
						accepted++
					default:
						refused++
						if want != nil {
							overlaps++
						}
					}
				}
			}
		}
	}
	t.Logf("%d dispatches described, %d refused, %d of them for overlaps", accepted, refused, overlaps)
	require.Greater(t, accepted, 600)
	require.Greater(t, refused, 120)
	require.Greater(t, overlaps, 20)
	require.Greater(t, moved, 200)
}

// argumentMemory adds a memory with the inline bytes of n, and returns their views by contents.
func argumentMemory(g *ir.Graph, n *ir.Dispatch) map[string]ir.View {
	m := ir.Memory{Name: "arguments", Kind: ir.Argument, Size: 1, Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitValues, Values: []ir.Value{}}}
	at := map[string]ir.View{}
	for _, b := range n.Bindings {
		if b.Kind == ir.BindBytes {
			at[string(b.Bytes)] = ir.ViewOf(ir.MemID(len(g.Memories)), m.Size, int64(len(b.Bytes)))
			m.Init.Values = append(m.Init.Values, ir.Value{Off: m.Size, Bytes: slices.Clone(b.Bytes)})
			m.Size += int64(len(b.Bytes)) + 3
		}
	}
	g.Memories = append(g.Memories, m)
	return at
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func compareInstances(t *testing.T, c *msl.Cache, g *ir.Graph, n *ir.Dispatch) {
	want, wantErr := msl.Bind(g, n)
	got, gotErr := c.Bind(n)
	require.Equal(t, message(wantErr), message(gotErr))
	if wantErr != nil {
		return
	}
	require.Same(t, want.Decl, got.Decl)
	require.Same(t, n, got.Dispatch)
	affine := cmp.Comparer(ir.Affine.Equal)
	require.Empty(t, cmp.Diff(want.Symbols, got.Symbols, affine, cmp.Comparer(func(a, b float32) bool { return a == b || a != a && b != b })))
	require.Empty(t, cmp.Diff(want.Shapes, got.Shapes, affine))
	require.Equal(t, want.Strides, got.Strides)
	for i := range got.Views {
		if want.Decl.Args[i].Kind == ir.DeviceArg {
			require.True(t, want.Views[i].Mem == got.Views[i].Mem || want.Views[i] == ir.View{}, "%v %v", want.Views[i], got.Views[i])
		}
	}
	a, errA := want.Effects()
	b, errB := got.Effects()
	require.Equal(t, message(errA), message(errB))
	require.True(t, a.Equal(b))
	if errA == nil {
		require.Equal(t, message(want.CheckAliasing()), message(got.CheckAliasing()))
	}
}

// vary changes one thing of a dispatch at random.
func vary(n *ir.Dispatch, g *ir.Graph, r *rand.Rand) {
	b := &n.Bindings[r.IntN(len(n.Bindings))]
	switch r.IntN(13) {
	case 12:
		n.Kernel = ir.KernelID(len(g.Kernels) - 1)
	case 0, 1: // another place
		b.View.Off = b.View.Off.AddConst(int64(r.IntN(9)-4) * 8)
	case 2:
		b.View.Off = b.View.Off.AddConst(int64(r.IntN(9) - 4)) // another alignment
	case 3:
		b.View.Mem = ir.MemID(r.IntN(len(g.Memories)))
	case 4, 5: // the place of another view
		o := n.Bindings[r.IntN(len(n.Bindings))].View
		b.View.Mem, b.View.Off = o.Mem, o.Off
	case 6:
		o := n.Bindings[r.IntN(len(n.Bindings))].View
		b.View.Mem, b.View.Off = o.Mem, o.Off.Add(o.Len).AddConst(int64(r.IntN(3)-2)*4)
	case 7:
		b.View.Len = b.View.Len.AddConst(int64(r.IntN(9) - 4))
	case 8:
		if len(b.Bytes) > 0 {
			b.Bytes[r.IntN(len(b.Bytes))] ^= 1 << r.IntN(8)
		}
	case 9:
		i := r.IntN(3)
		n.Grid[i].Num = n.Grid[i].Num.AddConst(int64(r.IntN(3)))
	case 10:
		n.Threadgroup[r.IntN(3)]++
	case 11:
		if len(g.Params) > 0 {
			b.View.Off = b.View.Off.Add(ir.Linear(0, ir.Term{Param: ir.ParamID(r.IntN(len(g.Params))), Coeff: int64(r.IntN(3) * 8)}))
		}
	}
}
