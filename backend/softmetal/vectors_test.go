//go:build unix

package softmetal

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// exchanged is a simdgroup function of AIR, and the result that each thread gets.
type exchanged struct {
	name string
	lane int // 1: by is a lane or a distance; 2: only the last two bits of by count
	want func(width int) expected
}

// within returns the result of taking a value from the lane that source chooses in each group of width lanes.
func within(source func(s *simdgroup, lane, width int) int) func(width int) expected {
	return func(width int) expected {
		return from(func(s *simdgroup, lane int) int { return lane/width*width + source(s, lane%width, width) })
	}
}

func prefixes(inclusive bool, identity int64, f func(a, b int64) int64) func(width int) expected {
	return func(width int) expected {
		return func(s *simdgroup, lane int) (int64, bool) {
			end := lane
			if inclusive {
				end++
			}
			if v, any := s.fold(lane/width*width, end, f); any {
				return v, true
			}
			return identity, true
		}
	}
}

func over(f func(s *simdgroup) func(a, b int64) int64) func(width int) expected {
	return func(width int) expected { return overAll(width, f) }
}

var exchangedNumbers = []exchanged{
	{"sum", 0, over(plain(add))},
	{"product", 0, over(plain(multiply))},
	{"min", 0, over(func(s *simdgroup) func(a, b int64) int64 { return s.least })},
	{"max", 0, over(func(s *simdgroup) func(a, b int64) int64 { return s.greatest })},
	{"prefix_inclusive_sum", 0, prefixes(true, 0, add)},
	{"prefix_exclusive_sum", 0, prefixes(false, 0, add)},
	{"prefix_inclusive_product", 0, prefixes(true, 1, multiply)},
	{"prefix_exclusive_product", 0, prefixes(false, 1, multiply)},
	{"broadcast_first", 0, func(width int) expected {
		return from(func(s *simdgroup, lane int) int {
			base := lane / width * width
			return base + bits.TrailingZeros32(s.here()>>base)
		})
	}},
	{"shuffle", 1, within(func(s *simdgroup, _, width int) int { return s.by % width })},
	{"broadcast", 1, within(func(s *simdgroup, _, width int) int { return s.by % width })},
	{"shuffle_xor", 1, within(func(s *simdgroup, lane, width int) int { return lane ^ s.by%width })},
	{"shuffle_up", 1, within(func(s *simdgroup, lane, width int) int {
		if by := s.by % width; lane >= by {
			return lane - by
		}
		return lane
	})},
	{"shuffle_down", 1, within(func(s *simdgroup, lane, width int) int {
		if by := s.by % width; lane+by < width {
			return lane + by
		}
		return lane
	})},
	{"shuffle_rotate_up", 1, within(func(s *simdgroup, lane, width int) int { return (lane + width - s.by%width) % width })},
	{"shuffle_rotate_down", 1, within(func(s *simdgroup, lane, width int) int { return (lane + s.by) % width })},
}

var exchangedBits = []exchanged{
	{"and", 0, over(plain(func(a, b int64) int64 { return a & b }))},
	{"or", 0, over(plain(func(a, b int64) int64 { return a | b }))},
	{"xor", 0, over(plain(func(a, b int64) int64 { return a ^ b }))},
}

// TestExchangeVectors tests the functions that compiled libraries call and our Metal headers do not: on vectors, on
// 64-bit integers, and all those of quadgroups.
func TestExchangeVectors(t *testing.T) {
	sample.Long(t)
	r := newRig(t, Options{Workers: 2})
	types := []struct {
		element
		count     int
		llvm, air string // LLVM's type of an element, and how the names of functions spell it
	}{
		{element{"long", 8, 's'}, 1, "i64", "s.%si64"},
		{element{"ulong", 8, 'u'}, 1, "i64", "u.%si64"},
		{element{"float", 4, 'f'}, 2, "float", "%sf32"},
		{element{"float", 4, 'f'}, 4, "float", "%sf32"},
		{element{"half", 2, 'f'}, 3, "half", "%sf16"},
		{element{"bfloat", 2, 'b'}, 4, "bfloat", "%sbf16"},
		{element{"char", 1, 's'}, 4, "i8", "s.%si8"},
		{element{"ushort", 2, 'u'}, 3, "i16", "u.%si16"},
		{element{"uint", 4, 'u'}, 3, "i32", "u.%si32"},
		{element{"int", 4, 's'}, 1, "i32", "s.%si32"},
		{element{"float", 4, 'f'}, 1, "float", "%sf32"},
	}
	var inputs []air.Input
	var names []string
	types = sample.Of(t, t.Name(), types, 4)
	for _, x := range types {
		list := exchangedNumbers
		if !x.floating() {
			list = append(list[:len(list):len(list)], exchangedBits...)
		}
		typ, shape := x.llvm, ""
		if x.count > 1 {
			typ, shape = fmt.Sprintf("<%d x %s>", x.count, x.llvm), fmt.Sprint("v", x.count)
		}
		name := fmt.Sprint("exchange_", x.name, x.count)
		names = append(names, name)
		var b, declared strings.Builder
		fmt.Fprintf(&b, "define void @%s(ptr addrspace(1) %%in, ptr addrspace(1) %%active, ptr addrspace(1) %%out, ptr addrspace(2) %%byp, i32 %%i, i32 %%n) {\nentry:\n", name)
		fmt.Fprintf(&b, "  %%by = load i16, ptr addrspace(2) %%byp, align 2\n  %%quad = and i16 %%by, 3\n  %%at = zext i32 %%i to i64\n  %%all = zext i32 %%n to i64\n")
		fmt.Fprintf(&b, "  %%ap = getelementptr i32, ptr addrspace(1) %%active, i64 %%at\n  %%a = load i32, ptr addrspace(1) %%ap, align 4\n  %%is = icmp ne i32 %%a, 0\n")
		fmt.Fprintf(&b, "  %%xo = mul i64 %%at, %d\n  %%xp = getelementptr i8, ptr addrspace(1) %%in, i64 %%xo\n  %%x = load %s, ptr addrspace(1) %%xp, align %d\n", x.bytes*x.count, typ, x.bytes)
		fmt.Fprintf(&b, "  br i1 %%is, label %%here, label %%end\nhere:\n")
		for p, f := range append(list[:len(list):len(list)], list...) {
			group, by := "simd", "%by"
			if p >= len(list) {
				group, by = "quad", "%quad"
			}
			function := fmt.Sprintf("air.%s_%s.%s", group, f.name, fmt.Sprintf(x.air, shape))
			args, params := fmt.Sprintf("%s %%x", typ), typ
			if f.lane > 0 {
				args, params = args+", i16 "+by, params+", i16"
			}
			fmt.Fprintf(&b, "  %%r%d = call %s @%s(%s) #0\n", p, typ, function, args)
			fmt.Fprintf(&b, "  %%o%[1]d = mul i64 %%all, %[1]d\n  %%s%[1]d = add i64 %%o%[1]d, %%at\n  %%m%[1]d = mul i64 %%s%[1]d, %[2]d\n", p, x.bytes*x.count)
			fmt.Fprintf(&b, "  %%p%[1]d = getelementptr i8, ptr addrspace(1) %%out, i64 %%m%[1]d\n  store %[2]s %%r%[1]d, ptr addrspace(1) %%p%[1]d, align %[3]d\n", p, typ, x.bytes)
			fmt.Fprintf(&declared, "declare %s @%s(%s) #0\n", typ, function, params)
		}
		b.WriteString("  br label %end\nend:\n  ret void\n}\n")
		text := b.String() + declared.String() + "attributes #0 = { convergent nounwind memory(none) }\n"
		inputs = append(inputs, air.Input{Name: "generated.ll", IR: []byte(text), Kernel: &air.Kernel{Name: name, Args: []air.Arg{
			{Name: "in", Index: 0, Space: air.Device}, {Name: "active", Index: 1, Space: air.Device}, {Name: "out", Index: 2, Space: air.Device},
			{Name: "by", Index: 3, Space: air.Constant}, {Name: "i", Attribute: "thread_position_in_grid"}, {Name: "n", Attribute: "threads_per_grid"},
		}}})
	}
	r.add(inputs)
	for at, x := range types {
		t.Run(names[at], func(t *testing.T) {
			list := exchangedNumbers
			if !x.floating() {
				list = append(list[:len(list):len(list)], exchangedBits...)
			}
			random := rand.New(rand.NewPCG(9, uint64(at)))
			compared := 0
			for _, n := range []int{1, 31, 33, 1000} {
				for which := range 4 {
					by := random.IntN(32)
					masks := masksOf(random, (n+31)/32, which)
					values, active := make([]int64, n*x.count), make([]uint32, n)
					in := make([]byte, len(values)*x.bytes)
					for i := range values {
						values[i] = x.random(random)
						x.put(in[i*x.bytes:], values[i])
					}
					for i := range active {
						active[i] = masks[i/32] >> (i % 32) & 1
					}
					out := r.buffer(make([]byte, 2*len(list)*len(in)))
					grid := [3]uint32{uint32(n), 1, 1}
					require.NoError(t, r.run(context.Background(), names[at], grid, grid, r.buffer(in), r.buffer(bytesOf(active)), out, uint32(by)))
					for first := 0; first < n; first += 32 {
						for c := range x.count {
							s := &simdgroup{element: x.element, first: first, count: min(32, n-first), mask: masks[first/32], by: by}
							for lane := range s.count {
								s.values = append(s.values, values[(first+lane)*x.count+c])
							}
							for p := range 2 * len(list) {
								f, width := list[p%len(list)], 32
								if p >= len(list) {
									width = 4
								}
								for lane := range s.count {
									v, defined := f.want(width)(s, lane)
									if !s.active(lane) || !defined {
										continue
									}
									compared++
									got := x.get(out.bytes()[((p*n+first+lane)*x.count+c)*x.bytes:])
									require.Equal(t, v, got, "%s of %d threads, by %d, mask %08x of %d: thread %d, element %d", f.name, width, by, s.mask, s.count, first+lane, c)
								}
							}
						}
					}
				}
			}
			require.Greater(t, compared, 10_000)
		})
	}
}
