//go:build unix

package infer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// recipe generates a kernel whose effects are known by construction: thread (x, y) copies Length elements of a to y,
// between places that are affine in x and y.
//
//	y[to.first + y·to.pitch + x·to.step + j] = a[from.first + y·from.pitch + x·from.step + j]
type recipe struct {
	Length   term
	To, From walk
	Guard    bool // threads with x ≥ p0 do nothing
	Decides  bool // only elements above 0 are stored
	Gather   bool // y·pitch of a is idx[y]·pitch
	Half     bool // y is half
	Both     bool // y is added to
	Param    bool // the width of the grid, and p0, are a param of the graph
	Wide     int64
	High     int64
	P        [4]int64 // the arguments p0 … p3
}

type walk struct{ First, Pitch, Step term }

// term is a number times a product of arguments, by index; −1 is the width of the grid.
type term struct {
	Num int64
	Of  []int
}

func (t term) text() string {
	s := fmt.Sprint(t.Num)
	for _, p := range t.Of {
		if p < 0 {
			s += "*size.x"
		} else {
			s += fmt.Sprintf("*p%d", p)
		}
	}
	return s
}

func (t term) eval(p [4]int64, wide int64) int64 {
	v := t.Num
	for _, i := range t.Of {
		if i < 0 {
			v *= wide
		} else {
			v *= p[i]
		}
	}
	return v
}

func drawRecipe(t *rapid.T) recipe {
	bit := func(name string, of int) bool { return rapid.IntRange(0, of-1).Draw(t, name) == 0 }
	oneOf := func(name string, list ...term) term { return list[rapid.IntRange(0, len(list)-1).Draw(t, name)] }
	r := recipe{Guard: bit("guard", 2), Decides: bit("decides", 5), Gather: bit("gather", 6), Half: bit("half", 3), Both: bit("both", 5), Param: bit("param", 3)}
	r.Wide, r.High = rapid.Int64Range(3, 20).Draw(t, "wide"), rapid.Int64Range(1, 5).Draw(t, "high")
	r.P = [4]int64{r.Wide, rapid.Int64Range(1, 6).Draw(t, "p1"), 0, rapid.Int64Range(0, 40).Draw(t, "p3")}
	if r.Guard {
		r.P[0] = max(1, r.Wide-rapid.Int64Range(0, 2).Draw(t, "less"))
	}
	r.Length = oneOf("length", term{1, nil}, term{2, nil}, term{3, nil}, term{1, []int{1}}, term{1, []int{1}}, term{4, []int{1}})
	// p2 is a pitch: at least the length of a row.
	length := r.Length.eval(r.P, r.Wide)
	r.P[2] = r.Wide*length + rapid.Int64Range(0, 9).Draw(t, "slack")
	row := term{r.Length.Num, append([]int{-1}, r.Length.Of...)}
	first := func(name string) term {
		return oneOf(name, term{0, nil}, term{0, nil}, term{5, nil}, term{1, []int{3}}, term{2, []int{3}})
	}
	r.To = walk{first("to"), oneOf("to pitch", row, term{1, []int{2}}, term{2, []int{2}}), r.Length}
	r.From = walk{first("from"), oneOf("from pitch", row, term{1, []int{2}}, term{0, nil}, term{7, nil}, term{1, []int{1, 2}}), oneOf("from step", r.Length, term{1, nil}, term{0, nil}, term{2, r.Length.Of})}
	if r.From.Pitch.Num == 0 {
		r.Gather = false // the compiler sees that no index matters
	}
	return r
}

// source returns the kernel in Metal.
func (r *recipe) source() string {
	typ, y, guard, store := "float", "t.y", "", "y[to] = a[from];"
	if r.Half {
		typ = "half"
	}
	if r.Gather {
		y = "idx[t.y]"
	}
	if r.Guard {
		guard = "if (t.x >= p0) return;"
	}
	switch {
	case r.Both:
		store = "y[to] += a[from];"
	case r.Decides:
		store = "if (a[from] > 0) y[to] = a[from];"
	}
	return fmt.Sprintf(`#include <metal_stdlib>
using namespace metal;
kernel void recipe(const device %[1]s* a [[buffer(0)]], const device int* idx [[buffer(1)]], device %[1]s* y [[buffer(2)]],
    constant uint& p0 [[buffer(3)]], constant uint& p1 [[buffer(4)]], constant uint& p2 [[buffer(5)]], constant uint& p3 [[buffer(6)]],
    uint3 t [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  %[2]s
  for (uint j = 0; j < %[3]s; j++) {
    uint to = %[4]s + t.y * (%[5]s) + t.x * (%[6]s) + j;
    uint from = %[7]s + %[8]s * (%[9]s) + t.x * (%[10]s) + j;
    %[11]s
  }
}
`, typ, guard, r.Length.text(), r.To.First.text(), r.To.Pitch.text(), r.To.Step.text(), r.From.First.text(), y, r.From.Pitch.text(), r.From.Step.text(), store)
}

func (r *recipe) size() int64 {
	if r.Half {
		return 2
	}
	return 4
}

// effects returns the bytes of a, idx and y that a dispatch touches; for a gather, the bytes of a that it may touch
// with indices below 8.
func (r *recipe) effects(p [4]int64, wide, high int64) (a, idx, y spans) {
	var as, is, ys []span
	for ty := range high {
		for tx := range wide {
			if r.Guard && tx >= p[0] {
				continue
			}
			n := r.Length.eval(p, wide)
			place := func(w walk, row int64) span {
				at := w.First.eval(p, wide) + row*w.Pitch.eval(p, wide) + tx*w.Step.eval(p, wide)
				return span{at * r.size(), (at + n) * r.size()}
			}
			if n > 0 {
				ys = append(ys, place(r.To, ty))
				if r.Gather {
					is = append(is, span{4 * ty, 4*ty + 4})
				}
			}
			rows := []int64{ty}
			if r.Gather {
				rows = []int64{0, 1, 2, 3, 4, 5, 6, 7}
			}
			for _, row := range rows {
				as = append(as, place(r.From, row))
			}
		}
	}
	return normal(as), normal(is), normal(ys)
}

// graph returns a graph with one dispatch of the kernel.
func (r *recipe) graph(path string) *ir.Graph {
	b := ir.NewBuilder("g")
	typ := ir.F32
	if r.Half {
		typ = ir.F16
	}
	text := r.source()
	args := []ir.Arg{{Slot: 0, Name: "a", Type: typ}, {Slot: 1, Name: "idx", Type: ir.I32}, {Slot: 2, Name: "y", Type: typ, Access: ir.ReadWriteArg}}
	as, is, ys := r.effects(r.P, r.Wide, r.High)
	d := ir.Dispatch{GridKind: ir.Threads, Threadgroup: [3]uint32{8, 1, 1}, Grid: [3]ir.Extent{ir.Ext(r.Wide), ir.Ext(r.High), ir.Ext(1)}}
	for i, s := range []spans{as, is, ys} {
		size := (s.hull().hi + 15) &^ 15
		d.Bindings = append(d.Bindings, ir.BufferArg(uint8(i), ir.ViewOf(b.Memory(ir.Memory{Name: args[i].Name, Kind: ir.State, Size: size + 16}), 0, size+16)))
	}
	for i, v := range r.P {
		args = append(args, ir.Arg{Slot: uint8(3 + i), Name: fmt.Sprintf("p%d", i), Kind: ir.ConstantArg, Type: ir.U32, Count: 1})
		d.Bindings = append(d.Bindings, ir.BytesArg(uint8(3+i), ir.ValueBytes(uint32(v))))
	}
	if r.Param {
		n := b.Param("n", 1, uint32(r.Wide))
		e := ir.Linear(0, ir.Term{Param: n, Coeff: 1})
		d.Grid[0] = ir.Extent{Num: e, Div: 1}
		if !r.Guard {
			d.Bindings[3] = ir.ScalarArg(3, ir.U32, e)
		}
	}
	d.Kernel = b.Kernel(ir.Kernel{Name: "k", Library: ir.Library{Kind: ir.SourceFile, Path: path, Digest: sha256.Sum256([]byte(text))}, Function: "recipe", Args: args})
	b.Dispatch(d)
	return b.Unfinished()
}

// inferred has reports by source and options, since two tests need the same ones.
var inferred = map[string]*Report{}

// infer proposes a declaration of the recipe's kernel.
func (r *recipe) infer(t testing.TB, x *Observer) (*ir.Graph, *Report) {
	// The path is absolute, because tests run in several folders at once.
	path := filepath.Join(t.TempDir(), "recipe.metal")
	require.NoError(t, os.WriteFile(path, []byte(r.source()), 0o600))
	g := r.graph(path)
	require.NoError(t, g.Check(), "%s", r.source())
	key := fmt.Sprint(r.source(), r, x.o.Shapes, x.o.HeldOut, x.o.Seed)
	if inferred[key] == nil {
		report, err := x.Propose(context.Background(), []*ir.Graph{g}, every)
		require.NoError(t, err)
		inferred[key] = report
	}
	return g, inferred[key]
}

// hold compares a proposal with the recipe on random shapes. It returns how many arguments are exact in all of them,
// and how many shapes the proposal describes.
func (r *recipe) hold(t testing.TB, p *Proposal, rng *rand.Rand) (exact, described int) {
	ds, err := parsed(p.Text)
	require.NoError(t, err, p.Text)
	equal := [3]bool{true, true, true}
	for range 200 {
		q, wide, high := r.P, r.Wide, r.High
		for i := range q {
			if rng.IntN(2) == 0 {
				q[i] = 1 + rng.Int64N(max(1, q[i]))
			}
		}
		if rng.IntN(2) == 0 {
			wide = 1 + rng.Int64N(wide)
		}
		if rng.IntN(2) == 0 {
			high = 1 + rng.Int64N(high)
		}
		b := ir.NewBuilder("h")
		d := ir.Dispatch{Kernel: b.Kernel(ds[0].Kernel("k")), GridKind: ir.Threads, Threadgroup: [3]uint32{8, 1, 1}, Grid: [3]ir.Extent{ir.Ext(wide), ir.Ext(high), ir.Ext(1)}}
		for i := range 3 {
			d.Bindings = append(d.Bindings, ir.BufferArg(uint8(i), ir.ViewOf(b.Memory(ir.Memory{Name: fmt.Sprint(i), Kind: ir.State, Size: 1 << 20}), 0, 1<<20)))
		}
		for i, v := range q {
			d.Bindings = append(d.Bindings, ir.BytesArg(uint8(3+i), ir.ValueBytes(uint32(v))))
		}
		e, err := accepts(ds[0], b.Unfinished(), b.Dispatch(d))
		if err != nil {
			require.ErrorIs(t, err, decl.ErrMismatch)
			continue // the proposal does not describe this shape
		}
		described++
		as, is, ys := r.effects(q, wide, high)
		for i, known := range []spans{as, is, ys} {
			reads, writes, must := declaredOf(e, ir.MemID(i))
			at := fmt.Sprintf("argument %d, p %v, grid %dx%d\n%s\n%s", i, q, wide, high, p.Text, r.source())
			require.Empty(t, known.minus(reads.union(writes)), "narrower than what is known: %s", at)
			if i == 2 {
				require.Empty(t, known.minus(writes), at)
				if r.Decides && !r.Both {
					require.Empty(t, must, at)
				}
				require.Empty(t, must.minus(known), at)
				if r.Both {
					require.Empty(t, must, "old bytes matter: %s", at)
				}
			} else {
				require.Empty(t, writes, at)
			}
			equal[i] = equal[i] && known.equal(reads.union(writes))
		}
	}
	for i := range equal {
		if equal[i] {
			exact++
		}
	}
	return exact, described
}

// recipes returns n recipes, always the same, so that the cache has their kernels from the second time on.
func recipes(n int) []recipe {
	out := make([]recipe, n)
	for i := range out {
		out[i] = rapid.Custom(drawRecipe).Example(i)
	}
	return out
}

// For kernels with known effects, a proposal is never too narrow and mostly exact, on shapes that were not observed.
func TestKnownKernels(t *testing.T) {
	sample.Seldom(t)
	n, o := 8, Options{Shapes: 24, HeldOut: 12, Seed: 3}
	if os.Getenv("MLXC_LONG") != "" {
		n, o = 150, Options{Seed: rand.Uint64()}
		t.Logf("seed %d", o.Seed)
	}
	x := observer(t, o)
	exact, could := 0, 0
	for i, r := range recipes(n) {
		_, report := r.infer(t, x)
		require.Len(t, report.Proposals, 1, "%d: %v\n%s", i, report.Left, r.source())
		p := &report.Proposals[0]
		t.Logf("recipe %d", i)
		e, described := r.hold(t, p, rand.New(rand.NewPCG(uint64(i), 9)))
		assert.Positive(t, described, "%d: %s", i, p.Text)
		exact += e
		if could += 3; r.Gather {
			could-- // indices decide about a
		}
		if e < 3 {
			t.Logf("%d: %d of 3 exact:\n%s%+v\n%s", i, e, p.Text, p.Fits, r.source())
		}
	}
	t.Logf("%d of %d arguments are exact", exact, could)
	assert.GreaterOrEqual(t, exact, could*9/10)
}

// lie is a declaration that was made wrong for one argument.
type lie struct{ what, text string }

// lies returns wrong variants of a declaration, for each argument that it has a shape for.
func lies(p *Proposal) (out []lie) {
	for _, f := range p.Fits {
		if f.Shape == "" || f.Shape == "[_]" {
			continue
		}
		typ := "f32"
		if strings.Contains(p.Text, f.Argument+" device f16") {
			typ = "f16"
		}
		line := func(shape, access string) string {
			if access == "unused" {
				shape = ""
			}
			return fmt.Sprintf("%s device %s%s %s\n", f.Argument, typ, shape, access)
		}
		was := line(f.Shape, f.Access)
		if !strings.Contains(p.Text, was) {
			continue // of another type
		}
		tell := func(what, shape, access string) {
			out = append(out, lie{f.Argument + ": " + what, strings.Replace(p.Text, was, line(shape, access), 1)})
		}
		inner := strings.Trim(f.Shape, "[]")
		shape, at, _ := strings.Cut(inner, " at ")
		dims, strides, strided := strings.Cut(shape, " : ")
		first, rest, more := strings.Cut(dims, ", ")
		again := func(first string, at string) string {
			s := "[" + first
			if more {
				s += ", " + rest
			}
			if strided {
				s += " : " + strides
			}
			if at != "" {
				s += " at " + at
			}
			return s + "]"
		}
		tell("one less of the outermost", again("("+first+") - 1", at), f.Access)
		if at == "" {
			tell("one element later", again(first, "1"), f.Access)
		} else {
			tell("one element later", again(first, at+" + 1"), f.Access)
		}
		tell("never touched", f.Shape, "unused")
		switch f.Access {
		case "write":
			tell("only read", f.Shape, "read")
			tell("more is certainly written", again("("+first+") + 1", at), "write")
		case "update":
			tell("only read", f.Shape, "read")
			tell("certainly written", f.Shape, "write")
		}
	}
	return out
}

// Compare finds every wrong declaration.
func TestPlantedLies(t *testing.T) {
	sample.Seldom(t)
	x := observer(t, Options{Shapes: 24, HeldOut: 12, Seed: 3})
	few := observer(t, Options{Shapes: 9, Seed: 3})
	found := 0
	for i, r := range recipes(8) {
		g, report := r.infer(t, x)
		p := &report.Proposals[0]
		cs, left := classes(g, nil, every)
		require.Empty(t, left)
		against := func(text string) *Comparison {
			ds, err := parsed(text)
			require.NoError(t, err, text)
			out, err := few.against(context.Background(), cs[0], "a lie", func(g *ir.Graph, d *ir.Dispatch) (*ir.Effects, error) { return accepts(ds[0], g, d) })
			require.NoError(t, err, text)
			return out
		}
		require.Empty(t, against(p.Text).Broken, "%d: the truth", i)
		for _, l := range lies(p) {
			if r.Both && strings.HasSuffix(l.what, ": certainly written") {
				continue // it is certainly written: that old bytes matter shows as a read
			}
			assert.NotEmpty(t, against(l.text).Broken, "%d: %s\n%s\n%s", i, l.what, l.text, r.source())
			found++
		}
	}
	t.Logf("%d lies", found)
	assert.GreaterOrEqual(t, found, 30)
}
