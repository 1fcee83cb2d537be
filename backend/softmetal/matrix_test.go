//go:build unix

package softmetal

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMatrix compares products of simdgroup matrices with their definition, for small integers, so that every operand
// and every order of summation is exact.
func TestMatrix(t *testing.T) {
	r := newRig(t, Options{Workers: 1}).metal("matrix.metal")
	types := map[string]element{"float": {"float", 4, 'f'}, "half": {"half", 2, 'f'}, "bfloat": {"bfloat", 2, 'b'}}
	full := [3]uint32{32, 1, 1}
	for name := range r.kernels {
		parts := strings.Split(name, "_")
		if len(parts) != 3 {
			continue
		}
		ed, ea, eb := types[parts[0]], types[parts[1]], types[parts[2]]
		random := rand.New(rand.NewPCG(3, 4))
		for _, row := range []int{8, 13} {
			at := [2]int{random.IntN(row - 7), random.IntN(4)} // column, row
			make := func(e element, n int) (*buffer, []int64) {
				values, data := make([]int64, n), make([]byte, n*e.bytes)
				for i := range values {
					values[i] = int64(random.IntN(7) - 3)
					e.put(data[i*e.bytes:], values[i])
				}
				return r.buffer(data), values
			}
			ab, a := make(ea, 64)
			bb, b := make(eb, row*12)
			cb, c := make(ed, 64)
			d := r.buffer(slices.Repeat([]byte{0x11}, row*8*ed.bytes))
			require.NoError(t, r.run(context.Background(), name, full, full, ab, bb, cb, d, uint32(row), bytesOf([]uint32{uint32(at[0]), uint32(at[1])})))
			for i := range 8 {
				for j := range row {
					p := (i*row + j) * ed.bytes
					if j >= 8 {
						assert.Equal(t, slices.Repeat([]byte{0x11}, ed.bytes), d.bytes()[p:][:ed.bytes], "written beside the matrix")
						continue
					}
					want := c[8*j+i]
					for k := range 8 {
						want += a[8*i+k] * b[(at[1]+k)*row+at[0]+j]
					}
					assert.Equal(t, want, ed.get(d.bytes()[p:]), "%s, rows of %d: element %d, %d", name, row, i, j)
				}
			}
		}
	}

	in := make([]float32, 4*64)
	for i := range in {
		in[i] = float32(i % 61)
	}
	out := r.buffer(make([]byte, 4*4*128))
	require.NoError(t, r.run(context.Background(), "staged", [3]uint32{128, 1, 1}, [3]uint32{128, 1, 1}, r.buffer(bytesOf(in)), out))
	got := floatsOf(out.bytes())
	for s := range 4 {
		for i := range 64 {
			assert.Equal(t, 3*in[64*s+i]+2, got[128*s+i])
			// Each thread has added 100 to the first, which lies in an even column.
			want := in[64*s+i%8*8+i/8]
			if i/8%2 == 0 {
				want += 100
			}
			assert.Equal(t, want, got[128*s+64+i])
		}
	}

	// Each element belongs to one thread, and the two of a thread are neighbours in a row.
	out = r.buffer(make([]byte, 4*64))
	for i := range 64 {
		in[i] = float32(i)
	}
	require.NoError(t, r.run(context.Background(), "elements", full, full, r.buffer(bytesOf(in[:64])), out))
	seen := floatsOf(out.bytes())
	for i := 0; i < 64; i += 2 {
		assert.Equal(t, seen[i]+1, seen[i+1])
		assert.Zero(t, int(seen[i])%2)
	}
	slices.Sort(seen)
	assert.Equal(t, in[:64], seen)
}
