package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// The arena may grow while a command buffer is open. Its contents stay, even if the commands
// that made it grow are discarded, and on a device whose memory the host cannot see.
func TestArenaGrows(t *testing.T) {
	for _, private := range []bool{false, true} {
		for _, discard := range []bool{false, true} {
			d := device(t, testdevice.Options{Private: private})
			s := record.New("t", record.Live(d))
			x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
			require.NoError(t, s.Write(x, ir.ValueBytes([]float32{1, 2, 3, 4})))
			a := s.Mul(x, x)
			s.Commit("first")
			b := s.Add(a, a)
			if discard {
				s.Commit("second")
			}
			for n := int64(1); n < 100_000; n *= 10 {
				s.Fill(s.Scratch(ir.F32, ir.Const(n)), 0, "large")
			}
			if discard {
				s.Discard()
			}
			s.Add(a, b, record.Into(y))
			_, err := s.Finish()
			require.NoError(t, err)
			out := make([]byte, 16)
			require.NoError(t, s.Read(y, out))
			require.Equal(t, ir.ValueBytes([]float32{3, 12, 27, 48}), out)
			_, err = s.Bytes(y)
			if private {
				require.ErrorContains(t, err, "the host does not see this memory of test: Read and Write copy")
			} else {
				require.NoError(t, err)
			}
			require.ErrorContains(t, s.Read(y, make([]byte, 17)), "it has 16 bytes, not 17")
			require.ErrorContains(t, s.Write(s.RandomWeight("w", 1, ir.F32, 4), nil), "a weight")
			require.NoError(t, s.Close())
		}
	}
}
