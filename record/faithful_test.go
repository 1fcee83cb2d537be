package record

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// drawn draws operands of random layouts.
type drawn struct {
	*rand.Rand
	s *Session
	n int
}

// input returns an operand of a shape: a part of a greater one with its dimensions in another order, or contiguous.
func (d *drawn) input(t ir.DType, shape ...int64) Tensor {
	d.n++
	order := d.Perm(len(shape))
	if d.IntN(2) == 0 {
		for i := range order {
			order[i] = i
		}
	}
	whole := make([]int64, len(shape)) // in the order of the memory
	for at, dim := range order {
		whole[at] = shape[dim] + int64(d.IntN(2)*d.IntN(3))
	}
	x := d.s.Input(fmt.Sprint("in", d.n), t, whole...)
	out := x
	out.Shape, out.Strides = Dims(shape...), make([]int64, len(shape))
	for at, dim := range order {
		out.Strides[dim] = x.Strides[at]
	}
	return out
}

// faithful are operations of every family on random sizes.
var faithful = map[string]func(d *drawn, t ir.DType) ([]operand, asked){
	"rms_norm": func(d *drawn, t ir.DType) ([]operand, asked) {
		k := 1 + d.Int64N(6000)
		in := tensors(d.input(t, 1+d.Int64N(5), 1+d.Int64N(4), k), d.input(t, k))
		return in, func(e *encoder, x arrays) arrays { return arrays{e.RMSNorm(x[0], x[1], 1e-5)} }
	},
	"layer_norm_vjp": func(d *drawn, t ir.DType) ([]operand, asked) {
		rows, k := 1+d.Int64N(100), 1+d.Int64N(300)
		in := tensors(d.input(t, rows, k), d.input(t, k), d.input(t, k), d.input(t, rows, k))
		return in, func(e *encoder, x arrays) arrays {
			gx, gw, gb := e.LayerNormVJP(x[0], x[1], x[2], x[3], 1e-5)
			return arrays{gx, gw, gb}
		}
	},
	"quantized_matmul": func(d *drawn, t ir.DType) ([]operand, asked) {
		bits, group := []int64{2, 3, 4, 5, 6, 8}[d.IntN(6)], []int64{32, 64, 128}[d.IntN(3)]
		n, k := group*(1+d.Int64N(4)), group*(1+d.Int64N(10))
		batch := 1 + d.Int64N(3)
		in := tensors(d.input(t, batch, 1+d.Int64N(40), k), d.input(ir.U32, batch, n, k*bits/32), d.input(t, batch, n, k/group), d.input(t, batch, n, k/group))
		return in, func(e *encoder, x arrays) arrays {
			m := routes.Matrix{Codes: x[1], Scales: x[2], Biases: x[3], Affine: routes.Affine{Bits: bits, Group: group}, Transposed: true}
			return arrays{e.QuantizedMatmul(x[0], m)}
		}
	},
	"matmul": func(d *drawn, t ir.DType) ([]operand, asked) {
		b, m, n, k := 1+d.Int64N(3), 1+d.Int64N(40), 1+d.Int64N(40), 1+d.Int64N(400)
		in := tensors(d.input(t, b, m, k), d.input(t, b, k, n), d.input(t, n))
		return in, func(e *encoder, x arrays) arrays { return arrays{e.AddMM(x[0], x[1], x[2], 2, 0.5)} }
	},
	"attention": func(d *drawn, t ir.DType) ([]operand, asked) {
		b, heads, shared, length, keys := 1+d.Int64N(2), 1+d.Int64N(3), 1+d.Int64N(3), 1+d.Int64N(12), 12+d.Int64N(30)
		width := []int64{32, 64, 80, 128}[d.IntN(4)]
		in := tensors(d.input(t, b, heads*shared, length, width), d.input(t, b, heads, keys, width), d.input(t, b, heads, keys, width), d.input(ir.Bool, length, keys))
		return in, func(e *encoder, x arrays) arrays {
			return arrays{e.Attention(x[0], x[1], x[2], routes.Attention{Scale: 0.5, Mask: x[3]})}
		}
	},
	"rope": func(d *drawn, t ir.DType) ([]operand, asked) {
		in := tensors(d.input(t, 2, 1+d.Int64N(5), 1+d.Int64N(5), 16), d.input(ir.I32, 2))
		return in, func(e *encoder, x arrays) arrays {
			return arrays{e.Rope(x[0], x[1], routes.Array{}, routes.Rope{Dims: 12, Base: 10000, Scale: 1})}
		}
	},
	"where": func(d *drawn, t ir.DType) ([]operand, asked) {
		a, b, c := 1+d.Int64N(4), 1+d.Int64N(5), 1+d.Int64N(6)
		in := tensors(d.input(ir.Bool, a, b, c), d.input(t, b, c), d.input(t, a, 1, c))
		return in, func(e *encoder, x arrays) arrays { return arrays{e.Select(x[0], x[1], x[2])} }
	},
	"concatenate": func(d *drawn, t ir.DType) ([]operand, asked) {
		in := tensors(d.input(t, 3, 1+d.Int64N(4), 5), d.input(t, 3, 1+d.Int64N(4), 5))
		return in, func(e *encoder, x arrays) arrays { return arrays{e.Concatenate(1, x...)} }
	},
	"sum": func(d *drawn, t ir.DType) ([]operand, asked) {
		in := tensors(d.input(t, 2+d.Int64N(40), 2+d.Int64N(200), 2+d.Int64N(30)))
		axis := d.IntN(3)
		return in, func(e *encoder, x arrays) arrays { return arrays{e.Reduce("sum", x[0], []int{axis})} }
	},
	"argsort": func(d *drawn, t ir.DType) ([]operand, asked) {
		in := tensors(d.input(t, 2, 1+d.Int64N(5000)))
		return in, func(e *encoder, x arrays) arrays { return arrays{e.Sort(x[0], 1, true)} }
	},
}

// A recording holds what routes send: each kernel with its constants, grid and arguments, one place for each buffer, and a
// barrier where a dispatch needs one. Routes are held against MLX (TestCaptures), this holds recordings against routes.
func TestRecordingsHoldWhatRoutesSend(t *testing.T) {
	for name, draw := range faithful {
		for seed := range uint64(60) {
			s := New("t", ManualBarriers())
			d := &drawn{rand.New(rand.NewPCG(seed, 7)), s, 0}
			typ := []ir.DType{ir.F32, ir.F16, ir.BF16}[seed%3]
			in, ask := draw(d, typ)
			e := &routes.Encoder{Chip: s.chip, Version: routes.Release0_32_4}
			want, starts := make(arrays, len(in)), map[*routes.Buffer]ir.View{}
			for i := range in {
				strides := make([]ir.Affine, len(in[i].t.Strides))
				for j, n := range in[i].t.Strides {
					strides[j] = ir.Const(n)
				}
				want[i] = routes.Array{Buffer: &routes.Buffer{}, Type: in[i].t.DType, Shape: in[i].t.Shape, Strides: strides}
				starts[want[i].Buffer] = in[i].t.view()
			}
			results := ask(e, want)
			require.NoError(t, e.Err)
			// A compiled library whose kernels want just what they get.
			tables := map[string]ir.Kernel{}
			for _, m := range e.Sent {
				k := ir.Kernel{Name: m.Kernel, Function: m.Kernel, Library: ir.Library{Kind: ir.Metallib, Path: "mlx.metallib"}}
				args := map[int]ir.Arg{}
				for _, m := range e.Sent { // of all its dispatches, which may bind different slots
					for _, a := range m.Arguments {
						arg := ir.Arg{Slot: uint8(a.Slot), Name: fmt.Sprint("a", a.Slot), Kind: ir.ConstantArg, Type: ir.U8}
						if a.Buffer != nil {
							arg.Kind = ir.DeviceArg
						}
						if a.Written {
							arg.Access = ir.WriteArg
						}
						if m.Kernel == k.Function {
							args[a.Slot] = arg
						}
					}
				}
				for _, slot := range slices.Sorted(maps.Keys(args)) {
					k.Args = append(k.Args, args[slot])
				}
				for _, c := range m.Constants {
					x := ir.FunctionConstant{Index: uint16(c.Index), Name: fmt.Sprint("c", c.Index), Type: ir.I32}
					if c.Bool {
						x.Type = ir.Bool
					}
					k.Constants = append(k.Constants, x)
				}
				tables[m.Kernel] = k
			}
			s.compiled = func(f string) (ir.Kernel, bool) { k, ok := tables[f]; return k, ok }
			out := make([]Tensor, len(results))
			s.sendAll(operation{name: name, exact: true}, nil, in, nil, out, ask)
			r, err := s.Finish()
			require.NoError(t, err, "%s, seed %d", name, seed)
			require.Empty(t, r.Races(), "%s, seed %d", name, seed)
			for i := range results {
				starts[results[i].Buffer] = out[i].view()
				require.Equal(t, results[i].Type, out[i].DType)
				require.Equal(t, len(results[i].Shape), len(out[i].Shape))
			}
			nodes := r.Graph.Nodes
			for at, m := range e.Sent {
				what := fmt.Sprintf("%s, seed %d, dispatch %d, %s", name, seed, at, m.Kernel)
				if m.Barrier {
					require.IsType(t, &ir.Barrier{}, nodes[0], what)
					nodes = nodes[1:]
				}
				got := nodes[0].(*ir.Dispatch)
				nodes = nodes[1:]
				k := &r.Graph.Kernels[got.Kernel]
				require.Equal(t, m.Kernel, k.Function, what)
				require.Equal(t, m.Grid, got.Grid, what)
				require.Equal(t, m.Threads, got.GridKind == ir.Threads, what)
				require.Len(t, k.Constants, len(m.Constants), what)
				for i, c := range m.Constants {
					require.Equal(t, [2]uint64{uint64(c.Index), uint64(c.Value)}, [2]uint64{uint64(k.Constants[i].Index), k.Constants[i].Bits}, what)
				}
				require.Len(t, got.Bindings, len(m.Arguments), what)
				for _, a := range m.Arguments {
					var b *ir.Binding
					for i := range got.Bindings {
						if int(got.Bindings[i].Slot) == a.Slot {
							b = &got.Bindings[i]
						}
					}
					require.NotNil(t, b, "%s, slot %d", what, a.Slot)
					if a.Buffer == nil {
						var bytes []byte
						for _, v := range a.Values {
							bytes = append(bytes, binary.LittleEndian.AppendUint64(nil, uint64(v.Value.Const))[:v.Bytes]...)
						}
						require.Equal(t, bytes, b.Bytes, "%s, slot %d", what, a.Slot)
						continue
					}
					start, ok := starts[a.Buffer]
					if !ok {
						start = b.View
						start.Off = start.Off.Sub(a.Offset)
						starts[a.Buffer] = start
					}
					require.Equal(t, start.Mem, b.View.Mem, "%s, slot %d", what, a.Slot)
					require.Equal(t, start.Off.Add(a.Offset), b.View.Off, "%s, slot %d", what, a.Slot)
				}
			}
			require.Empty(t, nodes, "%s, seed %d", name, seed)
		}
	}
}
