//go:build unix

package softmetal_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Silu in 16 bits is what MLX's own kernels make of x times its sigmoid, which is stored between, for every value of a type.
func TestSiluIsMLXs(t *testing.T) {
	sample.Seldom(t)
	ctx := context.Background()
	d, err := softmetal.New(ctx, softmetal.Options{Trust: true})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	var data []byte
	for i := range 1 << 16 {
		data = binary.LittleEndian.AppendUint16(data, uint16(i))
	}
	for _, typ := range []ir.DType{ir.F16, ir.BF16} {
		results := func(options []record.Setting, do func(s *record.Session, x record.Tensor) record.Tensor) []byte {
			s := record.New("t", append(options, record.Live(d))...)
			x := s.Input("x", typ, 1<<16)
			require.NoError(t, s.Write(x, data))
			y, out := do(s, x), s.State("out", typ, 1<<16)
			s.CopyTo("copy", out, y)
			_, err := s.Finish()
			require.NoError(t, err)
			got := make([]byte, len(data))
			require.NoError(t, s.Read(out, got))
			require.NoError(t, s.Close())
			return got
		}
		want := results([]record.Setting{record.Compiled(compiledByMLX(t))}, func(s *record.Session, x record.Tensor) record.Tensor {
			m := s.MLX()
			return m.Elementwise("multiply", []record.Tensor{x, m.Elementwise("sigmoid", []record.Tensor{x})})
		})
		got := results(nil, func(s *record.Session, x record.Tensor) record.Tensor { return s.Silu(x) })
		for i := range 1 << 16 {
			w, g := binary.LittleEndian.Uint16(want[2*i:]), binary.LittleEndian.Uint16(got[2*i:])
			exponent := uint16(0x7c00)
			if typ == ir.BF16 {
				exponent = 0x7f80
			}
			if isNaN := func(v uint16) bool { return v&0x7fff > exponent }; !(isNaN(w) && isNaN(g)) {
				require.Equalf(t, w, g, "%s: silu of %#x", typ, i)
			}
		}
	}
}
