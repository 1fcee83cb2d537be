//go:build unix

package softmetal

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/divergence"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestControl runs kernels whose threads diverge and reconverge. The active threads must be those of structured
// control flow: threads in the same branch are active together, and behind it all that have not returned are.
func TestControl(t *testing.T) {
	r := newRig(t, Options{Workers: 1}).metal("control.metal")
	count := func(n int, is func(lane int) bool) (out uint32) {
		for lane := range n {
			if is(lane) {
				out++
			}
		}
		return out
	}
	for _, c := range []struct {
		kernel string
		words  int // of output, for each thread
		args   []any
		want   func(lane, n int) []uint32 // for a lane of a simdgroup of n threads
	}{
		{"parted", 2, nil, func(lane, n int) []uint32 {
			return []uint32{count(n, func(l int) bool { return (l%3 == 0) == (lane%3 == 0) }), uint32(n)}
		}},
		{"nested", 5, nil, func(lane, n int) []uint32 {
			out := []uint32{uint32(n), 0, 0, 0, uint32(n)}
			if lane < 16 {
				out[1] = uint32(min(n, 16))
				out[3] = out[1]
			}
			if lane < 5 {
				out[2] = uint32(min(n, 5))
			}
			return out
		}},
		{"rounds", 2, nil, func(lane, n int) []uint32 {
			out := []uint32{0, uint32(n)}
			for k := range lane % 5 {
				out[0] = out[0]*33 + count(n, func(l int) bool { return l%5 > k })
			}
			return out
		}},
		{"middle", 3, []any{uint32(9)}, func(lane, n int) []uint32 {
			out := []uint32{0, 0, uint32(n)}
			for k := 0; k <= lane%5; k++ {
				out[0] = out[0]*33 + count(n, func(l int) bool { return l%5 >= k })
				if k < lane%5 && lane%2 == 0 {
					out[1] = out[1]*33 + count(n, func(l int) bool { return l%5 > k && l%2 == 0 })
				}
			}
			return out
		}},
		{"loops", 3, []any{uint32(3)}, func(lane, n int) []uint32 {
			out := []uint32{0, 0, uint32(n)}
			for range 3 {
				for k := 0; k < min(2, lane/8); k++ {
					out[0] += count(n, func(l int) bool { return min(2, l/8) > k })
				}
				out[1] = out[1]*33 + uint32(n)
			}
			return out
		}},
		{"returned", 2, nil, func(lane, n int) []uint32 {
			here := uint32(min(n, 20))
			switch {
			case lane >= 20:
				return []uint32{77, 77}
			case lane == 3:
				return []uint32{here, 78}
			case n > 3:
				return []uint32{here, here - 1}
			}
			return []uint32{here, here}
		}},
		{"cases", 2, nil, func(lane, n int) []uint32 {
			same := func(k int) uint32 { return count(n, func(l int) bool { return l%4 == k }) }
			// Lanes of case 2 and of the default execute the last case together.
			last := 2 * (same(2) + same(3))
			all := uint32(2 * n)
			switch lane % 4 {
			case 0:
				return []uint32{2 * same(0), all}
			case 1:
				greatest := uint32(0)
				for l := range n {
					if l%4 == 1 {
						greatest = uint32(l)
					}
				}
				return []uint32{greatest, all}
			case 2:
				return []uint32{2*100 + last, all}
			}
			return []uint32{last, all}
		}},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			for _, threads := range []int{1, 31, 32, 33, 128, 1023} {
				out := r.buffer(make([]byte, 4*c.words*threads))
				require.NoError(t, r.run(context.Background(), c.kernel, [3]uint32{uint32(threads), 1, 1}, [3]uint32{uint32(threads), 1, 1}, append([]any{out}, c.args...)...))
				got := wordsOf(out.bytes())
				for i := range threads {
					n := min(32, threads-i/32*32)
					require.Equal(t, c.want(i%32, n), got[c.words*i:][:c.words], "thread %d of %d", i, threads)
				}
			}
		})
	}
}

// TestDivergence runs random kernels whose threads diverge and reconverge.
func TestDivergence(t *testing.T) {
	sample.Long(t)
	random := rand.New(rand.NewPCG(1, 2))
	programs := make([]*divergence.Program, 6)
	for i := range programs {
		programs[i] = divergence.Random(fmt.Sprint("divergent", i), random)
	}
	r := newRig(t, Options{Workers: 2}).source("divergent.metal", divergence.Source(programs))
	for _, p := range programs {
		for _, size := range []int{1, 31, 33, 1023} {
			threads := 2*size + (size+1)/2
			out := r.buffer(make([]byte, 4*threads))
			require.NoError(t, r.run(context.Background(), p.Name, [3]uint32{uint32(threads), 1, 1}, [3]uint32{uint32(size), 1, 1}, out, uint32(divergence.Uniform)))
			require.Equal(t, p.Run(threads, size), wordsOf(out.bytes()), "%s in threadgroups of %d", p.Name, size)
		}
	}
}

// TestThreadgroupMemory sums the values of a threadgroup's threads in threadgroup memory: in a variable of the
// kernel, and in two arguments whose length the host sets.
func TestThreadgroupMemory(t *testing.T) {
	sample.Long(t)
	for _, workers := range []int{1, 4} {
		r := newRig(t, Options{Workers: workers}).metal("control.metal")
		for _, size := range []int{1, 31, 32, 33, 100, 1000, 1023, 1024} {
			for twice := range uint32(2) {
				const groups = 5
				n := size*(groups-1) + (size+1)/2 // the last threadgroup is smaller
				random := rand.New(rand.NewPCG(1, uint64(size)))
				in, want := make([]uint32, n), make([]uint32, 3*groups)
				for i := range in {
					in[i] = random.Uint32()
					for k := range uint32(3) {
						want[3*(i/size)+int(k)] += in[i] * (k + 1)
					}
				}
				for g := range groups {
					want[3*g] <<= twice
				}
				out := r.buffer(make([]byte, 4*3*groups))
				require.NoError(t, r.run(context.Background(), "halves", [3]uint32{uint32(n), 1, 1}, [3]uint32{uint32(size), 1, 1},
					r.buffer(bytesOf(in)), out, twice, local(4*size), local(4*size)))
				require.Equal(t, want, wordsOf(out.bytes()), "threadgroups of %d", size)
			}
		}
	}
}

// TestPlaces compares the positions and sizes that kernel attributes give each thread with the definitions in Metal's
// table of compute attributes, on grids whose threadgroups at the edges are smaller.
func TestPlaces(t *testing.T) {
	r := newRig(t, Options{Workers: 2}).metal("control.metal")
	for _, c := range []struct{ grid, group [3]uint32 }{
		{[3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}},
		{[3]uint32{100, 1, 1}, [3]uint32{48, 1, 1}},
		{[3]uint32{17, 9, 1}, [3]uint32{8, 4, 1}},
		{[3]uint32{7, 5, 6}, [3]uint32{4, 3, 2}},
		{[3]uint32{3, 2, 70}, [3]uint32{1, 1, 64}},
		{[3]uint32{40, 3, 3}, [3]uint32{33, 3, 2}},
	} {
		for _, kernel := range []string{"places", "places_row"} {
			t.Run(fmt.Sprint(kernel, c.grid, c.group), func(t *testing.T) {
				threads := c.grid[0] * c.grid[1] * c.grid[2]
				out := r.buffer(make([]byte, 4*32*threads))
				require.NoError(t, r.run(context.Background(), kernel, c.grid, c.group, out))
				got := wordsOf(out.bytes())
				for z := range c.grid[2] {
					for y := range c.grid[1] {
						for x := range c.grid[0] {
							at := [3]uint32{x, y, z}
							var local, group, size, groups [3]uint32
							for k := range 3 {
								local[k], group[k] = at[k]%c.group[k], at[k]/c.group[k]
								groups[k] = (c.grid[k] + c.group[k] - 1) / c.group[k]
								size[k] = min(c.group[k], c.grid[k]-group[k]*c.group[k])
							}
							var want []uint32
							for _, v := range [][3]uint32{at, local, group, size, groups, c.grid, c.group} {
								want = append(want, v[:]...)
							}
							index := (local[2]*size[1]+local[1])*size[0] + local[0]
							here := size[0] * size[1] * size[2]
							want = append(want, index, index%32, index/32, (here+31)/32, 32, index/4, index%4, (c.group[0]*c.group[1]*c.group[2]+31)/32, 0)
							together := uint32(0)
							if kernel == "places" {
								together = min(32, here-index/32*32)
							}
							want = append(want, together, 0)
							require.Equal(t, want, got[32*((z*c.grid[1]+y)*c.grid[0]+x):][:32], "thread %v", at)
						}
					}
				}
			})
		}
	}
	out := r.buffer(make([]byte, 2*2*7*5))
	require.NoError(t, r.run(context.Background(), "short_places", [3]uint32{7, 5, 1}, [3]uint32{4, 4, 1}, out))
	for i := range 35 {
		assert.Equal(t, []byte{byte(i % 7 % 4), 0, byte(i / 7 % 4), 0}, out.bytes()[4*i:][:4])
	}
}

// TestDivision: an integer division without a result, by zero or with overflow, does not fault.
func TestDivision(t *testing.T) {
	r := newRig(t, Options{Workers: 1}).metal("control.metal")
	a, b := []int32{7, -7, math.MinInt32, 5, math.MinInt32, 0}, []int32{2, 2, -1, 0, 0, 0}
	out := r.buffer(make([]byte, 4*6*len(a)))
	require.NoError(t, r.run(context.Background(), "divided", [3]uint32{uint32(len(a)), 1, 1}, [3]uint32{uint32(len(a)), 1, 1}, r.buffer(bytesOf(a)), r.buffer(bytesOf(b)), out))
	got := wordsOf(out.bytes())
	assert.Equal(t, []uint32{3, 1, 3, 1, 3, 3}, got[:6])
	minus := func(v int32) uint32 { return uint32(-v) }
	assert.Equal(t, []uint32{minus(3), minus(1), (1<<32 - 7) / 2, 1, minus(3), minus(3)}, got[6:12])
}
