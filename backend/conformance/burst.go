package conformance

import (
	"context"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// burstTests test that a burst, which is n replays in one submission, computes the same as n submissions between which
// the host advances the params and copies outputs to inputs.
var burstTests = map[string]func(*T){
	// Each replay doubles what the one before left (x, 2x, 4x, …) and writes it at $pos. One
	// output is kept of every replay, another of the last only.
	"replays/burst": func(t *T) {
		const n, k = 6, 1000
		p := newProgram("g")
		pos := p.Param("pos", 0, 2*n)
		x, y, z, s := p.memory("x", ir.Input, k), p.memory("y", ir.Output, k), p.memory("z", ir.Output, k), p.state("s", (2*n+1)*k, 0)
		p.add(y, x, x, k)
		p.binary("Add", floats(z, 0, k), floats(y, 0, k), floats(x, 0, k), ir.Const(k))
		row := ir.View{Mem: s, Off: param(pos, 4*k), Len: ir.Const(4 * k)}
		p.Copy(row, floats(y, 0, k), "")
		p.Barrier()
		p.Carry(floats(x, 0, k), floats(y, 0, k), "")
		p.Barrier()
		u := p.Unfinished()
		u.Params[0].Advance = 2
		u.Memories[y].Every = true
		for _, m := range []ir.MemID{x, y} {
			u.Memories[m].DType = ir.F32
		}
		g := t.graph(p)
		for _, count := range []int{1, 2, n} {
			plan := t.planned(t.open(replay.Options{}, g), "")
			f, err := plan.NewBurstFrame(context.Background(), n)
			require.NoError(t, err)
			in := make([]byte, 4*k)
			put(in, counting(1, k)...)
			require.NoError(t, f.SetInput("x", in))
			require.NoError(t, f.SetParam("pos", 1))
			heard := 0
			r, err := f.SubmitBurst(context.Background(), count, func(i int) {
				if i == heard {
					heard++
				}
			})
			require.NoError(t, err)
			_, err = r.Wait(context.Background())
			require.NoError(t, err)
			require.Equal(t, count, heard)
			want, past := counting(1, k), make([]float32, (2*n+1)*k)
			for i := range count {
				for j := range want {
					want[j] *= 2
				}
				copy(past[(1+2*i)*k:], want)
				out, err := f.OutputOf("y", i)
				require.NoError(t, err)
				require.Equal(t, want, get(out), "replay %d of %d", i, count)
			}
			st, err := f.State("s")
			require.NoError(t, err)
			require.Equal(t, past, get(st))
			last, err := f.Output("z")
			require.NoError(t, err)
			for j := range want {
				want[j] *= 1.5
			}
			require.Equal(t, want, get(last))
		}
	},
}
