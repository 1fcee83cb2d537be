//go:build unix

package softmetal

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/msl/term"
)

// element is a number type. All numbers of these tests are integers, in floating types so small that every sum and
// product is exact, whatever the order.
type element struct {
	name  string
	bytes int
	kind  byte // f, b (bfloat), s, u
}

var elementsOfMetal = []element{
	{"float", 4, 'f'}, {"half", 2, 'f'}, {"bfloat", 2, 'b'},
	{"char", 1, 's'}, {"uchar", 1, 'u'}, {"short", 2, 's'}, {"ushort", 2, 'u'}, {"int", 4, 's'}, {"uint", 4, 'u'},
}

func (e element) floating() bool { return e.kind == 'f' || e.kind == 'b' }

// wrap returns v wrapped to the range of the type.
func (e element) wrap(v int64) int64 {
	shift := 64 - 8*e.bytes
	switch e.kind {
	case 's':
		return v << shift >> shift
	case 'u':
		return int64(uint64(v) << shift >> shift)
	}
	return v
}

func (e element) less(a, b int64) bool {
	if e.kind == 'u' {
		return uint64(a) < uint64(b)
	}
	return a < b
}

func (e element) put(to []byte, v int64) {
	var w uint64
	switch {
	case e.kind == 'b':
		w = uint64(math.Float32bits(float32(v)) >> 16)
	case e.kind == 'f' && e.bytes == 2:
		w = uint64(term.F16Bits(float64(v)))
	case e.kind == 'f':
		w = uint64(math.Float32bits(float32(v)))
	default:
		w = uint64(v)
	}
	var data [8]byte
	binary.LittleEndian.PutUint64(data[:], w)
	copy(to[:e.bytes], data[:])
}

func (e element) get(from []byte) int64 {
	var data [8]byte
	copy(data[:], from[:e.bytes])
	w := binary.LittleEndian.Uint64(data[:])
	f := float64(0)
	switch {
	case e.kind == 'b':
		f = float64(math.Float32frombits(uint32(w) << 16))
	case e.kind == 'f' && e.bytes == 2:
		f = term.F16Value(uint16(w))
	case e.kind == 'f':
		f = float64(math.Float32frombits(uint32(w)))
	default:
		return e.wrap(int64(w))
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<40 {
		return math.MinInt64 // not a value that a test computes
	}
	return int64(f)
}

// random returns a random value for a test: any integer, or one of ±1 and ±2 for a floating type.
func (e element) random(r *rand.Rand) int64 {
	if !e.floating() {
		return e.wrap(int64(r.Uint64()))
	}
	v := int64(1)
	if r.IntN(8) == 0 {
		v = 2
	}
	if r.IntN(2) == 0 {
		v = -v
	}
	return v
}

// simdgroup is a simdgroup of a test: which of its threads are active, and the value of each.
type simdgroup struct {
	element
	first  int // index of its first thread in the grid
	count  int
	mask   uint32
	values []int64
	by     int // lane or distance
	modulo int
}

func (s *simdgroup) active(lane int) bool {
	return lane >= 0 && lane < s.count && s.mask>>lane&1 == 1
}

// fold reduces the values of the active threads of [from, to); any is false if there are none.
func (s *simdgroup) fold(from, to int, f func(a, b int64) int64) (out int64, any bool) {
	for i := from; i < to; i++ {
		switch {
		case !s.active(i):
		case !any:
			out, any = s.values[i], true
		default:
			out = s.wrap(f(out, s.values[i]))
		}
	}
	return out, any
}

// expected returns the result that a function gives an active thread; false where Metal leaves it undefined.
type expected func(s *simdgroup, lane int) (int64, bool)

func add(a, b int64) int64      { return a + b }
func multiply(a, b int64) int64 { return a * b }

func (s *simdgroup) least(a, b int64) int64 {
	if s.less(a, b) {
		return a
	}
	return b
}

func (s *simdgroup) greatest(a, b int64) int64 { return a + b - s.least(a, b) }

// overAll reduces over the active threads of the thread's simdgroup (width 32) or quadgroup (width 4).
func overAll(width int, f func(s *simdgroup) func(a, b int64) int64) expected {
	return func(s *simdgroup, lane int) (int64, bool) {
		base := lane / width * width
		return s.fold(base, base+width, f(s))
	}
}

// prefix reduces over the active threads before the thread, including itself if inclusive is set.
func prefix(inclusive bool, identity int64, f func(a, b int64) int64) expected {
	return func(s *simdgroup, lane int) (int64, bool) {
		if inclusive {
			return s.fold(0, lane+1, f)
		}
		if v, any := s.fold(0, lane, f); any {
			return v, true
		}
		return identity, true
	}
}

// from takes the value of another lane, and is undefined if that lane is inactive.
func from(source func(s *simdgroup, lane int) int) expected {
	return func(s *simdgroup, lane int) (int64, bool) {
		l := source(s, lane)
		if !s.active(l) {
			return 0, false
		}
		return s.values[l], true
	}
}

// filled is shuffle-and-fill: values shift within each vector of modulo threads, and the lanes left vacant get values
// from the other end of the filling vector, which are the threads' values plus 64.
func filled(up, whole bool) expected {
	return func(s *simdgroup, lane int) (int64, bool) {
		width := s.modulo
		if whole {
			width = 32
		}
		if s.by >= width {
			return 0, false
		}
		base, l := lane/width*width, lane%width
		if up {
			l -= s.by
		} else {
			l += s.by
		}
		filling := l < 0 || l >= width
		l = base + (l+width)%width
		if !s.active(l) {
			return 0, false
		}
		if filling {
			return s.wrap(s.values[l] + 64), true
		}
		return s.values[l], true
	}
}

func plain(f func(a, b int64) int64) func(*simdgroup) func(a, b int64) int64 {
	return func(*simdgroup) func(a, b int64) int64 { return f }
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// planes has, for each kernel of exchange.metal, the function whose results each plane of its output holds.
var planes = map[string][]expected{
	"reduce": {
		overAll(32, plain(add)), overAll(32, plain(multiply)),
		overAll(32, func(s *simdgroup) func(a, b int64) int64 { return s.least }),
		overAll(32, func(s *simdgroup) func(a, b int64) int64 { return s.greatest }),
		prefix(true, 0, add), prefix(false, 0, add),
		from(func(s *simdgroup, _ int) int { return bits.TrailingZeros32(s.here()) }),
		overAll(4, plain(add)),
		overAll(4, func(s *simdgroup) func(a, b int64) int64 { return s.least }),
		overAll(4, func(s *simdgroup) func(a, b int64) int64 { return s.greatest }),
	},
	"more": {prefix(true, 1, multiply), prefix(false, 1, multiply), overAll(4, plain(multiply))},
	"bits": {
		overAll(32, plain(func(a, b int64) int64 { return a & b })),
		overAll(32, plain(func(a, b int64) int64 { return a | b })),
		overAll(32, plain(func(a, b int64) int64 { return a ^ b })),
	},
	"shuffle": {
		from(func(s *simdgroup, lane int) int { return (lane*7 + s.by) & 31 }),
		from(func(s *simdgroup, lane int) int { // the lowest lanes keep their own value
			if lane < s.by {
				return lane
			}
			return lane - s.by
		}),
		from(func(s *simdgroup, lane int) int { // and here the highest lanes
			if lane+s.by >= 32 {
				return lane
			}
			return lane + s.by
		}),
		from(func(s *simdgroup, lane int) int { return lane ^ s.by }),
		from(func(s *simdgroup, lane int) int { return (lane - s.by) & 31 }),
		from(func(s *simdgroup, lane int) int { return (lane + s.by) & 31 }),
		from(func(s *simdgroup, lane int) int { return s.by }),
		from(func(s *simdgroup, lane int) int { return lane&^3 | (lane+s.by)&3 }),
		from(func(s *simdgroup, lane int) int { return lane&^3 | (lane^s.by)&3 }),
		from(func(s *simdgroup, lane int) int { return lane&^3 | s.by&3 }),
	},
	"fill": {filled(true, true), filled(false, true), filled(true, false), filled(false, false)},
	"vote": {
		func(s *simdgroup, _ int) (int64, bool) { return truth(s.positive() != 0), true },
		func(s *simdgroup, _ int) (int64, bool) { return truth(s.positive() == s.here()), true },
		func(s *simdgroup, _ int) (int64, bool) { return int64(s.positive()), true },
		func(s *simdgroup, _ int) (int64, bool) { return int64(s.here()), true },
		func(s *simdgroup, lane int) (int64, bool) { return truth(lane == bits.TrailingZeros32(s.here())), true },
		func(s *simdgroup, _ int) (int64, bool) { return truth(s.positive() != 0), true },
		func(s *simdgroup, _ int) (int64, bool) { return truth(s.positive() == s.here()), true },
		func(s *simdgroup, _ int) (int64, bool) { return int64(uint64(1)<<s.count - 1), true },
	},
}

// here returns the mask of the active threads that exist.
func (s *simdgroup) here() uint32 { return s.mask & uint32(uint64(1)<<s.count-1) }

// positive returns the mask of the active threads whose value is greater than 0.
func (s *simdgroup) positive() (out uint32) {
	for i := range s.count {
		if s.active(i) && s.values[i] > 0 {
			out |= 1 << i
		}
	}
	return out
}

// gridsOfExchange are the threads of a grid, and of a threadgroup.
var gridsOfExchange = [][2]int{{1, 1}, {31, 31}, {33, 33}, {64, 32}, {1023, 1023}, {100, 48}}

func masksOf(r *rand.Rand, n int, which int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		switch which {
		case 0:
			out[i] = math.MaxUint32
		case 1:
			out[i] = r.Uint32()
		case 2:
			out[i] = 1 << r.IntN(32)
		case 3:
			out[i] = 0x55555555 << r.IntN(2)
		}
	}
	return out
}

// TestExchange compares every function by which the threads of a simdgroup exchange values with its definition in the
// Metal Shading Language Specification (SIMD-group and quad-group functions): for each type, with all, some and one
// of the threads active, in threadgroups whose last simdgroup is not full.
func TestExchange(t *testing.T) {
	sample.Long(t)
	r := newRig(t, Options{Workers: 2}).metal("exchange.metal")
	kinds := func(e element) []string {
		switch {
		case e.name == "bfloat":
			return []string{"reduce", "shuffle"}
		case e.floating():
			return []string{"reduce", "more", "shuffle", "fill"}
		}
		return []string{"reduce", "more", "bits", "shuffle", "fill"}
	}
	for _, e := range sample.Of(t, t.Name(), elementsOfMetal, 4) {
		t.Run(e.name, func(t *testing.T) {
			for _, kind := range kinds(e) {
				exchange(t, r, e, e, kind, kind+"_"+e.name)
			}
		})
	}
	t.Run("vote", func(t *testing.T) {
		exchange(t, r, element{"int", 4, 's'}, element{"uint", 4, 'u'}, "vote", "vote")
	})
}

// exchange runs a kernel on all grids with all kinds of active masks, and compares what it computes.
func exchange(t *testing.T, r *rig, e, out element, kind, name string) {
	random := rand.New(rand.NewPCG(7, uint64(len(name))))
	compared := 0
	for _, shape := range gridsOfExchange {
		n, size := shape[0], shape[1]
		simds := (size + 31) / 32
		groups := (n + size - 1) / size
		for which := range 4 {
			by, modulo := 0, 32
			if kind == "shuffle" || kind == "fill" {
				by, modulo = random.IntN(32), 2<<random.IntN(5)
			}
			if kind == "fill" && which%2 == 0 {
				by = random.IntN(modulo)
			}
			masks := masksOf(random, groups*simds, which)
			values := make([]int64, n)
			in := make([]byte, n*e.bytes)
			for i := range values {
				values[i] = e.random(random)
				e.put(in[i*e.bytes:], values[i])
			}
			result := r.buffer(make([]byte, len(planes[kind])*n*out.bytes))
			args := []any{r.buffer(in), r.buffer(bytesOf(masks)), result}
			if kind == "shuffle" || kind == "fill" {
				args = append(args, uint32(by))
			}
			if kind == "fill" {
				args = append(args, uint32(modulo))
			}
			require.NoError(t, r.run(context.Background(), name, [3]uint32{uint32(n), 1, 1}, [3]uint32{uint32(size), 1, 1}, args...))
			got := result.bytes()
			for first := 0; first < n; first += size {
				for k := range simds {
					s := &simdgroup{element: e, first: first + 32*k, mask: masks[first/size*simds+k], by: by, modulo: modulo}
					s.count = max(0, min(32, size-32*k, n-s.first))
					if s.count == 0 {
						continue
					}
					s.values = values[s.first : s.first+s.count]
					for p, want := range planes[kind] {
						for lane := range s.count {
							if !s.active(lane) {
								continue
							}
							v, defined := want(s, lane)
							if !defined {
								continue
							}
							compared++
							if g := out.get(got[(p*n+s.first+lane)*out.bytes:]); g != v {
								t.Fatalf("%s, plane %d, %d threads in threadgroups of %d, by %d, modulo %d, mask %08x of %d: thread %d (lane %d) has %d, want %d", name, p, n, size, by, modulo, s.mask, s.count, s.first+lane, lane, g, v)
							}
						}
					}
				}
			}
		}
	}
	require.Greater(t, compared, 1000, fmt.Sprint(name))
}

// TestExchangeOfSeveralSizes: a thread that goes on to exchange a larger value does not overwrite values that other
// threads have yet to take.
func TestExchangeOfSeveralSizes(t *testing.T) {
	r := newRig(t, Options{Workers: 1}).metal("mixed.metal")
	out := r.buffer(make([]byte, 64*8*8))
	require.NoError(t, r.run(context.Background(), "mixed", [3]uint32{64, 1, 1}, [3]uint32{64, 1, 1}, out))
	for i := range 64 {
		lane := uint64(i % 32)
		other := 31 - lane // the partner in the steps that all lanes execute together
		e := other
		f := lane ^ 1 // the value of the neighbour
		if lane%2 == 0 {
			e = 31 - (lane ^ 2)
		} else {
			f = 4*(31-(lane^1^2)) + 1
		}
		want := []uint64{other, 100 + other, 1000 + other, 10000 + other, 4*e + 1, 4*e + 3, f, 5}
		for k, w := range want {
			assert.Equal(t, w, binary.LittleEndian.Uint64(out.bytes()[64*i+8*k:]), "thread %d, value %d", i, k)
		}
	}
}
