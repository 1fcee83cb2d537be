//go:build (darwin || linux) && (amd64 || arm64)

package plan

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// TestArguments: an argument that is misaligned for some params is an error that names it.
func TestArguments(t *testing.T) {
	const text = `mlxt 1

graph g {
  param $pos u32 in [0, 7]
  memory %x input 64 f16[32]
  memory %y output 64 f16[32]
  kernel @k builtin "k" args(0 a: device f16 read, 1 s: constant f16, 2 c: device f16 write)

  #0 @k (a = A, s = S, c = %y[0:32]) grid threads [16, 1, 1] of [16, 1, 1]
}
`
	for _, x := range []struct{ a, s, want string }{
		{"%x[2:34]", "%x[4:6]", ""},
		{"%x[2:34]", "1.5", ""},
		{"%x[2 * $pos:2 * $pos + 32]", "%x[4 * $pos:4 * $pos + 2]", ""},
		{"%x[1:33]", "%x[4:6]", "argument 0 (a): %x[1:33] begins at an address that is no multiple of 2 bytes"},
		{"%x[$pos:$pos + 32]", "%x[4:6]", "argument 0 (a): %x[$pos:$pos + 32] begins at an address that is no multiple of 2 bytes"},
		{"%x[2:34]", "%x[2:4]", "argument 1 (s): %x[2:4] begins at an address that is no multiple of 4 bytes"},
		{"%x[2:34]", "%x[2 * $pos:2 * $pos + 2]", "argument 1 (s): %x[2*$pos:2*$pos + 2] begins at an address that is no multiple of 4 bytes"},
	} {
		m, err := mlxt.Parse(context.Background(), "t", []byte(strings.NewReplacer("a = A", "a = "+x.a, "s = S", "s = "+x.s).Replace(text)))
		require.NoError(t, err)
		g := m.Graphs[0]
		err = Arguments(g, g.Nodes[0].(*ir.Dispatch))
		if x.want == "" {
			assert.NoError(t, err, "%+v", x)
			continue
		}
		assert.ErrorContains(t, err, x.want, "%+v", x)
	}
}

// TestWidths: a copy moves as many bytes at a time as the alignment of its memories allows: what they ask for, at
// least their elements' size. The copies of an output that is kept of every replay lie one behind the other.
func TestWidths(t *testing.T) {
	for _, x := range []struct {
		y     ir.Memory
		width int
	}{
		{ir.Memory{Size: 33}, 16},
		{ir.Memory{Size: 32, Align: 1}, 1},
		{ir.Memory{Size: 32, Align: 1, DType: ir.F16}, 1},
		{ir.Memory{Size: 32, Align: 1, DType: ir.F32}, 4},
		{ir.Memory{Size: 32, Align: 1, DType: ir.I64}, 4},
		{ir.Memory{Size: 32, Align: 4}, 4},
		{ir.Memory{Size: 32, Align: 256, DType: ir.F16}, 16},
		{ir.Memory{Size: 32, Every: true}, 16},
		{ir.Memory{Size: 36, Every: true}, 4},
		{ir.Memory{Size: 33, Every: true}, 1},
		{ir.Memory{Size: 33, Every: true, Align: 256}, 1},
	} {
		b := ir.NewBuilder("widths")
		from := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64})
		x.y.Name, x.y.Kind = "y", ir.Output
		if x.y.DType != ir.Invalid {
			x.y.Shape = []int64{x.y.Size / x.y.DType.Size()}
		}
		y := b.Memory(x.y)
		b.Copy(ir.ViewOf(y, 0, 16), ir.ViewOf(from, 0, 16), "")
		b.Barrier()
		b.Fill(ir.ViewOf(y, 0, 16), 1, "")
		g, err := b.Graph()
		require.NoError(t, err)
		p, err := Lower(t.Context(), g, Options{})
		require.NoError(t, err)
		for _, k := range p.Pipelines {
			assert.Equal(t, x.width, k.Width, "%+v", x.y)
		}
		compare(t, g, Options{}, nil, false)
	}
}

// TestEvery: to bind an argument to an output that is kept of every replay is an error if later copies of it would
// be misaligned.
func TestEvery(t *testing.T) {
	for _, size := range []int64{32, 36, 33} {
		for _, every := range []bool{false, true} {
			b := ir.NewBuilder("every")
			y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: size, Every: every})
			k := b.Kernel(ir.Kernel{Name: "k", Args: []ir.Arg{{Slot: 0, Name: "y", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}}})
			err := Arguments(b.Unfinished(), &ir.Dispatch{Kernel: k, Bindings: []ir.Binding{ir.BufferArg(0, ir.ViewOf(y, 0, 16))}})
			if every && size == 33 {
				assert.ErrorContains(t, err, "%y is kept of every replay and has 33 bytes, no multiple of 4")
			} else {
				assert.NoError(t, err)
			}
		}
	}
}
