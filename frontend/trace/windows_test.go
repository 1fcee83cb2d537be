package trace_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/traced"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
)

// place is floats of a buffer, of which an engine uses one for everything.
type place struct {
	buffer uint64
	at     uint64 // in bytes
}

// product is a dispatch of n floats: the third is the product of the others.
type product struct {
	places [3]place
	n      uint64
}

// multiplier logs the kernel that multiplies.
func multiplier(t *testing.T, l *log) uint64 {
	lib, mul := l.id(), l.id()
	l.Event(trace.Library, lib, "metallib", "mlx.metallib", metallibs.Small(t, "vv_Multiplyfloat32"))
	l.Event(trace.Pipeline, mul, lib, "vv_Multiplyfloat32")
	return mul
}

func (l *log) products(mul uint64, step []product) {
	l.run(1, func(e uint64) {
		l.Event(trace.Use, e, mul)
		for _, p := range step {
			for slot, x := range p.places {
				l.Event(trace.Bind, e, uint64(slot), x.buffer, x.at)
			}
			l.Event(trace.Bytes, e, uint64(3), word(uint32(p.n)))
			l.Event(trace.Dispatch, e, uint64(1), p.n, uint64(1), uint64(1), uint64(32), uint64(1), uint64(1))
			l.Event(trace.Barrier, e)
		}
	})
}

func floats(values ...float32) (out []byte) {
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
	}
	return out
}

// arena is a log of an engine with one buffer, whose result is a buffer that the host reads.
func arena(t *testing.T, size int) (l *log, mul, all, out uint64) {
	l = newLog()
	mul = multiplier(t, l)
	all = l.buffer(uint64(size), make([]byte, size))
	out = l.buffer(64, nil)
	l.Event(trace.Name, all, "all")
	l.Event(trace.Name, out, "out", "output")
	return l, mul, all, out
}

// described returns the kinds and sizes of a graph's memories, in the order of their names.
func described(g *ir.Graph) (out []string) {
	for i := range g.Memories {
		out = append(out, fmt.Sprintf("%s %s %d", g.Memories[i].Name, g.Memories[i].Kind, g.Memories[i].Size))
	}
	slices.Sort(out)
	return out
}

// What a step hands on within one buffer are memories, and what the host writes before each step is an input. Where that lay is scratch
// later: the graph has no state.
func TestPartsOfOneBuffer(t *testing.T) {
	l, mul, all, out := arena(t, 4096)
	at := func(n uint64) place { return place{all, n} }
	for i := range 3 {
		l.Event(trace.Contents, all, uint64(0), floats(float32(i+1), 2, 3, 4))
		l.Event(trace.Contents, all, uint64(1024), floats(2, 2, 2, 2))
		l.products(mul, []product{
			{[3]place{at(0), at(1024), at(2048)}, 4},
			{[3]place{at(2048), at(2048), at(0)}, 4}, // where the input was
			{[3]place{at(0), at(2048), at(2048)}, 4}, // in place
			{[3]place{at(0), at(2048), at(2056)}, 2}, // a part of it
			{[3]place{at(2048), at(0), {out, 0}}, 4},
		})
	}
	r := imported(t, l, trace.Options{Builtin: true})
	require.Equal(t, []string{"all input 16", "all.life2 input 16", "all.life3 scratch 16", "all.life4 scratch 16", "out output 64"}, described(r.Module.Graphs[0]), mlxt.Format(r.Module))
	for i, left := range traced.Replay(t, cpu.New(1), r.Module, r.Runs) {
		a := 2 * float32(i+1)
		b := a * a
		require.Equal(t, floats(b*a*b), left[0].Data[:4])
	}
}

// A row that is written into a cache is a part of what lives on, whatever else is in the buffer.
func TestCacheInOneBuffer(t *testing.T) {
	l, mul, all, out := arena(t, 8192)
	at := func(n uint64) place { return place{all, n} }
	l.Event(trace.Contents, all, uint64(4096), floats(slices.Repeat([]float32{3}, 16)...))
	for i := range uint64(4) {
		l.Event(trace.Contents, all, uint64(0), floats(float32(i+1), 1))
		l.products(mul, []product{
			{[3]place{at(0), at(4096), at(1024)}, 2},
			{[3]place{at(1024), at(0), at(5120 + 8*i)}, 2}, // a row of the cache
			{[3]place{at(5120), at(4096), at(1024)}, 8},    // all rows
			{[3]place{at(1024), at(4096), {out, 0}}, 8},
		})
	}
	r := imported(t, l, trace.Options{Builtin: true})
	require.Len(t, r.Module.Graphs, 1)
	text := mlxt.Format(r.Module)
	require.Contains(t, text, "8*$pos")
	found, _ := kinds(r.Module.Graphs[0])
	require.Equal(t, 1, strings.Count(found, "state"), text)
	for i, left := range traced.Replay(t, cpu.New(1), r.Module, r.Runs) {
		for row := range 4 {
			want := float32(0)
			if v := float32(row + 1); row <= i {
				want = 27 * v * v
			}
			require.Equal(t, floats(want), left[0].Data[8*row:8*row+4], "row %d of step %d", row, i)
		}
	}
}

// Engines that take random parts of one buffer, which overlap, are chains and diamonds, lie elsewhere in each step and are written by the
// host in between: their graphs compute what they did, and so do optimized ones.
func TestRandomParts(t *testing.T) {
	count := 40
	if os.Getenv("MLXC_LONG") != "" {
		count = 3000
	}
	imports, divided := 0, 0
	for seed := range count {
		random := rand.New(rand.NewPCG(uint64(sample.Run()), uint64(seed)))
		const floatsIn = 220
		l, mul, all, out := arena(t, 4*floatsIn)
		memory := make([]float32, floatsIn)
		type op struct {
			at, slope [3]int // in floats
			n         int
		}
		several := 1 + random.IntN(4)/3 // sequences of dispatches, which take turns
		ops := make([]op, several*(2+random.IntN(10)))
		type write struct{ at, n int }
		var writes []write
		for range 1 + random.IntN(3) {
			writes = append(writes, write{8 * random.IntN(20), 1 + random.IntN(16)})
		}
		moves, tidy := random.IntN(4) == 0, random.IntN(4) > 0 // tidy engines read what the host or they themselves have written
		n := 1 + random.IntN(8)
		known := []int{}
		for i := range writes {
			if known = append(known, writes[i].at); tidy {
				writes[i].n = max(n, writes[i].n)
			}
		}
		for i := range ops {
			o := &ops[i]
			if o.n = n; !tidy {
				o.n = 1 + random.IntN(8)
			}
			for again := true; again; {
				for k := range o.at {
					o.at[k], o.slope[k] = 8*random.IntN(20)+random.IntN(2)*random.IntN(8), 0
					if tidy && k < 2 {
						o.at[k] = known[random.IntN(len(known))]
					} else if moves && random.IntN(4) == 0 {
						o.slope[k] = random.IntN(3)
					}
				}
				again = false
				for k := range 2 { // what is written is what is read, or apart from it, in each step
					if random.IntN(5) == 0 {
						o.at[2], o.slope[2] = o.at[k], o.slope[k]
					}
				}
				for k := range 2 {
					// A declaration speaks of all values of $pos at once.
					most := 4*several - 1
					same := o.at[2] == o.at[k] && o.slope[2] == o.slope[k]
					again = again || !same && o.at[2] < o.at[k]+o.slope[k]*most+o.n && o.at[k] < o.at[2]+o.slope[2]*most+o.n
				}
			}
			if o.slope == [3]int{} {
				known = append(known, o.at[2])
			}
		}
		result, size := random.IntN(160), 16
		if tidy {
			result, size = known[len(known)-1], n
		}
		var want [][]byte
		for step := range 4 * several {
			for _, w := range writes {
				if !tidy && step > 0 && random.IntN(8) == 0 {
					continue // not always
				}
				for i := range w.n {
					memory[w.at+i] = float32(1 + random.IntN(3))
				}
				l.Event(trace.Contents, all, uint64(4*w.at), floats(memory[w.at:w.at+w.n]...))
			}
			var list []product
			for _, o := range ops[step%several*len(ops)/several : (step%several+1)*len(ops)/several] {
				var p product
				p.n = uint64(o.n)
				var v [3]int
				for k := range v {
					v[k] = o.at[k] + o.slope[k]*step
					p.places[k] = place{all, uint64(4 * v[k])}
				}
				list = append(list, p)
				values := make([]float32, o.n)
				for i := range values {
					values[i] = memory[v[0]+i] * memory[v[1]+i]
				}
				for i, x := range values {
					memory[v[2]+i] = x
				}
			}
			list = append(list, product{[3]place{{all, uint64(4 * result)}, {all, uint64(4 * result)}, {out, 0}}, uint64(size)})
			l.products(mul, list)
			values := make([]float32, size)
			for i := range values {
				values[i] = memory[result+i] * memory[result+i]
			}
			want = append(want, floats(values...))
		}
		require.NoError(t, l.Err())
		f, err := trace.Read("test", l.Bytes())
		require.NoError(t, err)
		r, err := trace.Import(t.Context(), f, trace.Options{Builtin: true})
		if err != nil {
			continue
		}
		imports++
		for _, g := range r.Module.Graphs {
			for i := range g.Memories {
				if g.Memories[i].Kind == ir.Scratch && int(g.Memories[i].Size) < floatsIn {
					divided++
					break
				}
			}
		}
		same := func(m *ir.Module, which string) {
			for i, left := range traced.Replay(t, cpu.New(1), m, r.Runs) {
				k := slices.IndexFunc(left, func(x traced.Memory) bool { return x.Name == "out" })
				require.GreaterOrEqual(t, k, 0)
				require.Equal(t, want[i], left[k].Data[:len(want[i])], "%s, step %d of seed %d/%d:\n%s", which, i, sample.Run(), seed, mlxt.Format(m))
			}
		}
		same(r.Module, "imported")
		optimized := &ir.Module{}
		for _, g := range r.Module.Graphs {
			x, err := optimize.Run(t.Context(), g, optimize.Options{Pipeline: passes.DefaultPipeline()})
			require.NoError(t, err)
			require.Equal(t, prove.Proved, x.Proof.Verdict, "seed %d/%d: %v\n%s", sample.Run(), seed, x.Proof, mlxt.Format(r.Module))
			optimized.Graphs = append(optimized.Graphs, x.Optimized)
		}
		same(optimized, "optimized")
	}
	t.Logf("%d of %d imported, %d graphs with scratch", imports, count, divided)
	require.Greater(t, imports, count*3/4)
	require.Greater(t, divided, count/4)
}

// A kernel that reads where an index in memory says may read all that lies behind: this keeps the parts of a buffer together, unless it is
// believed that it stays within the value there. The checker finds a replay where it does not.
func TestValues(t *testing.T) {
	sample.Seldom(t)
	const source = `#include <metal_stdlib>
using namespace metal;
kernel void twice(const device float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }
kernel void pick(const device float* x [[buffer(0)]], const device int* at [[buffer(1)]], device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) { y[i] = x[4 * at[0] + i]; }
`
	require.NoError(t, msl.Register("pick.effects", fmt.Sprintf(`
// @library source "pick.metal" sha256 %x

// @kernel   twice
// @effects  by hand
// @arg      0 x device f32[threads_x] read
// @arg      1 y device f32[threads_x] write
// @threads  threads_x, 1, 1
// @group    4, 1, 1

// @kernel   pick
// @effects  by hand
// @arg      0 x device f32[_] read
// @arg      1 at device i32[1] read
// @arg      2 y device f32[threads_x] write
// @threads  threads_x, 1, 1
// @group    4, 1, 1
`, sha256.Sum256([]byte(source)))))
	l := newLog()
	lib, twice, pick := l.id(), l.id(), l.id()
	l.Event(trace.Library, lib, "source", "pick.metal", []byte(source))
	l.Event(trace.Pipeline, twice, lib, "twice")
	l.Event(trace.Pipeline, pick, lib, "pick")
	all, out := l.buffer(4096, make([]byte, 4096)), l.buffer(16, nil)
	l.Event(trace.Name, all, "all")
	l.Event(trace.Name, out, "out", "output")
	for i := range uint32(4) {
		l.Event(trace.Contents, all, uint64(0), word(i))
		l.Event(trace.Contents, all, uint64(256), floats(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, float32(16+i)))
		l.run(1, func(e uint64) {
			do := func(kernel, n uint64, places ...place) {
				l.Event(trace.Use, e, kernel)
				for slot, x := range places {
					l.Event(trace.Bind, e, uint64(slot), x.buffer, x.at)
				}
				l.Event(trace.Dispatch, e, uint64(1), n, uint64(1), uint64(1), uint64(4), uint64(1), uint64(1))
				l.Event(trace.Barrier, e)
			}
			do(twice, 16, place{all, 256}, place{all, 1024})
			do(twice, 16, place{all, 1024}, place{all, 2048}) // something else behind the value
			do(twice, 16, place{all, 2048}, place{all, 3072})
			do(pick, 4, place{all, 1024}, place{all, 0}, place{out, 0})
		})
	}
	for _, values := range []bool{false, true} {
		r := importedWith(t, l.Bytes(), trace.Options{Values: values})
		remarks := strings.Join(r.Remarks, "\n")
		found, _ := kinds(r.Module.Graphs[0])
		if !values {
			require.Contains(t, remarks, "pick may touch all that lies behind what a dispatch gets")
			require.Contains(t, found, "state")
			continue
		}
		require.Contains(t, remarks, "what pick touches follows from memory")
		require.Equal(t, []string{"all input 4", "all.life2 input 64", "all.life3 scratch 64", "all.life4 scratch 64", "all.life5 output 64", "out output 16"}, described(r.Module.Graphs[0]))
		d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1, Check: true})
		require.NoError(t, err)
		defer d.Close()
		for i, left := range traced.Replay(t, d, r.Module, r.Runs) {
			want := floats(float32(8*i+2), float32(8*i+4), float32(8*i+6), float32(8*i+8))
			if i == 3 {
				want = floats(26, 28, 30, 38)
			}
			require.Equal(t, want, left[1].Data)
		}
		for _, o := range d.Observed() {
			require.Empty(t, o.Findings)
		}
		last := &r.Runs[3]
		k := slices.IndexFunc(last.Writes, func(w trace.HostWrite) bool { return w.Memory == "all" })
		last.Writes[k].Data = word(4)
		traced.Replay(t, d, r.Module, r.Runs[3:])
		beyond := 0
		for _, o := range d.Observed() {
			for i := range o.Findings {
				require.Equal(t, softmetal.OutOfBounds, o.Findings[i].Kind)
				beyond++
			}
		}
		require.Positive(t, beyond)
	}
}

// A buffer of many lives, one behind another and each in the place of one before: what they cost grows with their number.
func TestManyLives(t *testing.T) {
	sample.Long(t)
	n := 20_000
	if os.Getenv("MLXC_LONG") != "" {
		n = 200_000
	}
	for _, places := range []int{4, n} {
		l, mul, all, out := arena(t, 256*(places+1))
		at := func(n int) place { return place{all, uint64(256 * (n % places))} }
		step := make([]product, n)
		for i := range step {
			step[i] = product{[3]place{at(i), at(i), at(i + 1)}, 4}
		}
		step[n-1].places[2] = place{out, 0}
		for i := range 2 {
			l.Event(trace.Contents, all, uint64(0), floats(1, 1, 1, float32(i)))
			l.products(mul, step)
		}
		start := time.Now()
		r := imported(t, l, trace.Options{Builtin: true})
		t.Log(places, time.Since(start))
		require.Len(t, r.Module.Graphs, 1)
		require.Len(t, r.Module.Graphs[0].Memories, n+1)
	}
}
