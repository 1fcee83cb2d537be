package record_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// span is one run of bytes that a command touches.
type span struct {
	mem    ir.MemID
	lo, hi int64
	write  bool
}

func spans(g *ir.Graph, fx *ir.Effects, params []uint32) (out []span) {
	add := func(r ir.Region, w bool) {
		root, off := g.Root(r.Mem)
		at := []int64{off + r.Off.Eval(params)}
		for _, d := range r.Dims {
			var next []int64
			for k := range d.Count.Eval(params) {
				for _, a := range at {
					next = append(next, a+k*d.Stride)
				}
			}
			at = next
		}
		n := r.Run.Eval(params)
		for _, a := range at {
			out = append(out, span{root, a, a + n, w})
		}
	}
	for _, r := range fx.Reads {
		add(r, false)
	}
	for _, w := range fx.Writes {
		add(w.Region, true)
	}
	return out
}

// missing lists the conflicts of a graph that have no barrier or commit between them.
func missing(t *testing.T, g *ir.Graph, params []uint32) (bad []string) {
	c := msl.NewCache(g)
	type cmd struct {
		i int
		s []span
	}
	var group []cmd
	for i, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier, *ir.Commit:
			group = group[:0]
		case *ir.GroupBegin, *ir.GroupEnd:
		default:
			fx := n.(ir.Command).Touches()
			if d, ok := n.(*ir.Dispatch); ok {
				var err error
				fx, err = c.Describe(d)
				require.NoError(t, err)
			}
			s := spans(g, fx, params)
			for _, o := range group {
				for _, a := range o.s {
					for _, b := range s {
						if a.mem == b.mem && a.lo < b.hi && b.lo < a.hi && (a.write || b.write) {
							bad = append(bad, fmt.Sprint(g.DescribeNode(o.i), " | ", g.DescribeNode(i), a, b))
						}
					}
				}
			}
			group = append(group, cmd{i, s})
		}
	}
	return bad
}

// States have rowsN × colsN elements, and values are two rows of that width.
const (
	rowsN = 8
	colsN = 4
)

// program is a sequence of calls that is drawn once and can be made in any session.
type program struct{ steps []func(w *world) }

// world holds what a program works on in one session.
type world struct {
	s      *record.Session
	pool   *record.Pool
	n      ir.Affine
	states []record.Tensor
	in     record.Tensor
	outs   []record.Tensor
	vals   []record.Tensor // defined f32 [2, cols] values
}

func newWorld(s *record.Session) *world {
	w := &world{s: s, n: s.Param("n", 0, 3)}
	for i := range 2 {
		w.states = append(w.states, s.State(fmt.Sprint("s", i), ir.F32, rowsN, colsN))
		w.outs = append(w.outs, s.Output(fmt.Sprint("o", i), ir.F32, 2, colsN))
	}
	w.in = s.Input("x", ir.F32, 2, colsN)
	w.pool = s.NewPool("pool", ir.Scratch)
	return w
}

func two(t record.Tensor, row ir.Affine) record.Tensor {
	return t.Rows(row, ir.Const(2))
}

func draw(r *rand.Rand) program {
	var p program
	add := func(f func(w *world)) { p.steps = append(p.steps, f) }
	vals := 1 // the input
	pick := func() func(w *world) record.Tensor {
		a, b, k, m := r.IntN(3), r.IntN(2), r.IntN(vals), r.IntN(3)
		return func(w *world) record.Tensor {
			if a == 0 {
				switch m {
				case 0:
					return two(w.states[b], w.n)
				case 1:
					return two(w.states[b], w.n.AddConst(1))
				}
				return two(w.states[b], w.n.Scale(-1).AddConst(4))
			}
			return w.vals[k]
		}
	}
	for range 4 + r.IntN(24) {
		x, y := pick(), pick()
		op, b, m, lab := r.IntN(4), r.IntN(2), r.IntN(4), r.IntN(3)
		switch r.IntN(13) {
		case 0, 1, 2:
			add(func(w *world) {
				var t record.Tensor
				switch op {
				case 0:
					t = w.s.Add(x(w), y(w))
				case 1:
					t = w.s.Mul(x(w), y(w))
				case 2:
					t = w.s.RMSNorm(x(w), 1e-3)
				default:
					t = w.s.Sigmoid(x(w))
				}
				w.vals = append(w.vals, t)
			})
			vals++
		case 3, 4, 5:
			add(func(w *world) {
				to := two(w.states[b], w.n.AddConst(int64(lab)))
				if lab == 2 {
					to = two(w.states[b], w.n.Scale(-1).AddConst(int64(m)+3))
				}
				if m == 3 && lab == 2 {
					to = two(w.states[b], ir.Const(3))
				}
				// The value goes through scratch memory, because x and `to` may overlap.
				t := w.s.Sigmoid(x(w))
				w.s.CopyTo("put", to, t)
			})
		case 6:
			add(func(w *world) { // writes two columns of a state
				col := func(t record.Tensor, j int64) record.Tensor {
					t.Off = t.Off.AddConst(4 * j)
					t.Shape = []ir.Affine{t.Shape[0], ir.Const(2)}
					return t
				}
				t := w.s.Sigmoid(x(w))
				w.s.CopyTo("column", col(two(w.states[b], w.n), int64(m%3)), col(t, int64(lab)))
			})
		case 7:
			add(func(w *world) { w.s.Commit("c") })
		case 8:
			add(func(w *world) { w.s.Fill(w.states[b].Row(w.n), byte(m), "") })
		case 9:
			add(func(w *world) {
				a := w.pool.Alloc(ir.F32, 2, colsN)
				w.s.Sigmoid(x(w), record.Into(a))
				w.s.Add(a, y(w), record.Into(w.outs[b]))
				if m > 0 {
					w.pool.Free(a)
				}
			})
		case 10:
			add(func(w *world) {
				mark := w.s.ScratchMark()
				t := w.s.Mul(w.s.Sigmoid(x(w)), y(w))
				w.s.Copy(w.outs[b], t, "out")
				w.s.ScratchReset(mark)
			})
		case 11:
			add(func(w *world) { w.s.Copy(two(w.states[0], w.n), two(w.states[1], w.n.AddConst(int64(lab))), "state") })
		case 12:
			add(func(w *world) {
				w.s.Group("g")
				w.s.Require(w.n, 3)
				w.s.Param(fmt.Sprint("late", m), 1, 1)
				w.s.EndGroup()
			})
		}
	}
	add(func(w *world) {
		for i := range w.outs { // so that all of every output is defined
			w.s.Silu(w.vals[len(w.vals)-1], record.Into(w.outs[i]))
			if i == 0 {
				w.s.Copy(two(w.states[0], ir.Const(0)), w.outs[0], "")
			}
		}
	})
	return p
}

func (p program) run(w *world) {
	w.vals = append(w.vals[:0], w.in)
	for _, f := range p.steps {
		f(w)
	}
	w.pool.Reset()
}

func values(seed, i int) []byte {
	b := make([]byte, 4*2*colsN)
	for k := range 2 * colsN {
		binary.LittleEndian.PutUint32(b[4*k:], math.Float32bits(float32((seed*31+i*7+k*13)%17)/8-1))
	}
	return b
}

// Random programs whose views depend on params give the same bytes live, deferred, after
// passes, and replayed from a file. In every graph, each pair of commands that conflict for
// some value of the param, found byte by byte, has a barrier or a commit between them.
func TestRandomPrograms(t *testing.T) {
	for seed := 1; seed <= 10; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		progs := []program{draw(r), draw(r)}
		c := cpu.New(2)
		d := testdevice.New(c, testdevice.Options{})
		type mode struct {
			name string
			with []record.Setting
			fin  []record.FinishOption
		}
		modes := []mode{
			{"live", []record.Setting{record.Live(d)}, nil},
			{"capture+live", []record.Setting{record.Live(d), record.Capture()}, nil},
			{"deferred", []record.Setting{record.Deferred(d)}, nil},
			{"optimized", []record.Setting{record.Deferred(d)}, []record.FinishOption{record.Optimize(optimize.New(""))}},
			{"split", []record.Setting{record.Deferred(d)}, []record.FinishOption{record.Optimize(optimize.New("annotate,rename,schedule,barriers,plan,split,constants"))}},
			{"nowait", []record.Setting{record.Deferred(c)}, []record.FinishOption{record.NoWait(), record.Optimize(optimize.New("annotate,fuse,dce,reorder,barriers,split"))}},
		}
		results := map[string][][]byte{}
		var graphs []*ir.Graph
		for _, m := range modes {
			s := record.New("t", m.with...)
			w := newWorld(s)
			w.pool.Alloc(ir.F32, 2, colsN)
			for round, k := range []int{0, 1, 0, 1} {
				s.SetParam("n", float64((seed+round*3)%4))
				b, err := s.Bytes(w.in)
				require.NoError(t, err)
				copy(b, values(seed, round))
				progs[k].run(w)
				res, err := s.Finish(m.fin...)
				require.NoError(t, err, "seed %d %s", seed, m.name)
				if m.name == "nowait" {
					require.NoError(t, res.Wait())
				}
				if res.Graph != nil {
					for n := range 4 {
						bad := missing(t, res.Graph, []uint32{uint32(n), 1, 1, 1, 1})
						require.Empty(t, bad, "seed %d %s", seed, m.name)
					}
				}
				if o := res.Optimized; o != nil {
					for n := range 4 {
						if m.name == "split" {
							break
						}
						bad := missing(t, o, []uint32{uint32(n), 1, 1, 1, 1})
						require.Empty(t, bad, "seed %d %s", seed, m.name)
					}
				}
				if m.name == "capture+live" && round < 2 {
					res.Graph.Name = fmt.Sprint("g", k)
					graphs = append(graphs, res.Graph)
				}
				for _, x := range append(append([]record.Tensor{}, w.states...), w.outs...) {
					b, err := s.Bytes(x)
					require.NoError(t, err)
					results[m.name] = append(results[m.name], bytes.Clone(b))
				}
			}
			require.NoError(t, s.Close())
		}
		// The graphs are replayed from a file.
		path := filepath.Join(t.TempDir(), "x.mlxg")
		require.NoError(t, mlxg.WriteFile(context.Background(), path, &ir.Module{Graphs: graphs}, mlxg.WriteOptions{}))
		f, err := mlxg.Open(context.Background(), path, mlxg.OpenOptions{})
		require.NoError(t, err)
		rs, err := replay.Open(c, f.Module, replay.Options{Poison: true})
		require.NoError(t, err)
		for round, k := range []int{0, 1, 0, 1} {
			g, err := rs.Graph(context.Background(), fmt.Sprint("g", k))
			require.NoError(t, err)
			require.NoError(t, g.SetParam("n", float64((seed+round*3)%4)))
			for _, q := range g.IR().Params[1:] {
				require.NoError(t, g.SetParam(q.Name, 1))
			}
			require.NoError(t, g.SetInput("x", values(seed, round)))
			_, err = g.Run(context.Background())
			require.NoError(t, err)
			for i := range 2 {
				b, err := g.State(fmt.Sprint("s", i))
				require.NoError(t, err)
				results["replay"] = append(results["replay"], b)
			}
			for i := range 2 {
				b, err := g.Output(fmt.Sprint("o", i))
				require.NoError(t, err)
				results["replay"] = append(results["replay"], b)
			}
		}
		require.NoError(t, rs.Close())
		require.NoError(t, f.Close())
		for name, r := range results {
			for i := range r {
				require.Equal(t, results["live"][i], r[i], "seed %d: %s, result %d", seed, name, i)
			}
		}
		require.Empty(t, d.Leaks())
		require.NoError(t, c.Close())
	}
}
