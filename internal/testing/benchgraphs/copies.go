package benchgraphs

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// CopyFamilies returns families of graphs in which copies and fills stand alone or among builtin elementwise kernels,
// and a few buffers hold one value after another. The output depends on nearly all commands.
func CopyFamilies() []Family {
	family := func(name string, step func(b *copying, i int64)) Family {
		return Family{name, func(commands int) *ir.Graph {
			b := &copying{beginElementwise(name, commands)}
			half := b.g.Kernels[silu]
			half.Name, half.Function, half.Args = "v_Silufloat16float16", "v_Silufloat16float16", slices.Clone(half.Args)
			for i := range half.Args {
				half.Args[i].Type = ir.F16
			}
			b.g.Kernels = append(b.g.Kernels, half) // siluHalf
			for k := range int64(3) {
				b.copy(b.x, b.buffer(k))
			}
			for i := int64(0); b.left > maxStep+1; i++ {
				step(b, i)
			}
			for b.left > 2 {
				b.copy(b.buffer(0), b.buffer(1))
			}
			b.dispatch(add, b.buffer(2), b.buffer(0), b.buffer(1))
			b.copy(b.buffer(2), b.y)
			return b.g
		}}
	}
	return []Family{
		family("two buffers", func(b *copying, i int64) { b.copy(b.buffer(i%2), b.buffer((i+1)%2)) }),
		family("three buffers", func(b *copying, i int64) { b.copy(b.buffer(i%3), b.buffer((i+1)%3)) }),
		family("fills", func(b *copying, i int64) {
			b.copy(b.buffer(i%2), b.buffer((i+1)%2))
			b.fill(part(b.buffer(i%2), 0, elements/2))
		}),
		family("halves", func(b *copying, i int64) {
			from, to := b.buffer(i%2), b.buffer((i+1)%2)
			b.copy(part(from, 0, elements/2), part(to, elements/2, elements/2))
			b.copy(part(from, elements/2, elements/2), part(to, 0, elements/2))
		}),
		family("typed halves", func(b *copying, i int64) {
			from, to := b.buffer(i%2), b.buffer((i+1)%2)
			if i == 0 {
				b.dispatch(silu, to, from) // the copies behind it move f32, which one kernel can do for many
				return
			}
			b.copy(part(from, 0, elements/2), part(to, elements/2, elements/2))
			b.copy(part(from, elements/2, elements/2), part(to, 0, elements/2))
		}),
		family("overlaps", func(b *copying, i int64) {
			at := i / 2 % 2 * (elements / 4)
			b.copy(part(b.buffer(i%2), at, elements/2), part(b.buffer((i+1)%2), at+elements/4, elements/2))
		}),
		family("parts", func(b *copying, i int64) {
			at, n := i*64%(elements/2), 64*(1+i%5)
			b.copy(part(b.buffer(i%2), at, n), part(b.buffer((i+1)%2), at, n))
		}),
		family("kernels", func(b *copying, i int64) {
			if from, to := b.buffer(i%2), b.buffer((i+1)%2); i%3 == 0 {
				b.dispatch(silu, to, from)
			} else {
				b.copy(from, to)
			}
		}),
		family("lengths", func(b *copying, i int64) {
			n := 64 * (1 + i*7%5)
			b.dispatch(silu, part(b.buffer(i%2), 0, n), part(b.buffer((i+1)%2), 0, n))
			b.copy(part(b.buffer(i%2), 0, n), part(b.buffer((i+1)%2), elements/2, n))
			b.copy(part(b.buffer((i+1)%2), elements/2, n), part(b.buffer((i+1)%2), 0, n))
		}),
		family("unaligned", func(b *copying, i int64) {
			first, rest := part(b.buffer(0), 0, elements/2), part(b.buffer(1), 0, elements/2)
			b.dispatch(silu, rest, first)
			apart := b.buffer(2)
			apart.Off, apart.Len = ir.Const(apart.Off.Const+2*(i%2)), rest.Len
			b.copy(rest, apart)
			b.copy(apart, first)
		}),
		family("types", func(b *copying, i int64) {
			b.dispatch([]ir.KernelID{silu, siluHalf, siluHalf}[i%3], b.buffer(1), b.buffer(0))
			b.copy(b.buffer(1), b.buffer(0))
		}),
		family("updates", func(b *copying, i int64) {
			b.dispatch(add, b.buffer(0), b.buffer(0), b.buffer(1))
			b.copy(part(b.buffer(0), 0, elements/2), part(b.buffer(1), elements/2, elements/2))
		}),
		family("diamonds", func(b *copying, i int64) {
			b.dispatch(silu, b.buffer(1), b.buffer(0))
			b.copy(b.buffer(0), b.buffer(2))
			b.dispatch(add, b.buffer(0), b.buffer(1), b.buffer(2))
		}),
	}
}

// copying builds such a graph.
type copying struct{ *elementwise }

// siluHalf is the kernel that these families have besides those of the elementwise ones.
const siluHalf = mul + 1

// maxStep is the number of commands that a step has at most.
const maxStep = 3

// buffer returns buffer k of three.
func (b *copying) buffer(k int64) ir.View { return ir.ViewOf(b.scratch, k*4*elements, 4*elements) }

// part returns n elements of a buffer.
func part(v ir.View, from, n int64) ir.View { return ir.ViewOf(v.Mem, v.Off.Const+4*from, 4*n) }

func (b *copying) dispatch(k ir.KernelID, out ir.View, in ...ir.View) {
	b.left--
	b.elementwise.dispatch(k, out, in...)
}

func (b *copying) copy(from, to ir.View) {
	b.left--
	b.g.Nodes = append(b.g.Nodes, &ir.Copy{ID: b.id(), Src: from, Dst: to}, &ir.Barrier{})
}

func (b *copying) fill(to ir.View) {
	b.left--
	b.g.Nodes = append(b.g.Nodes, &ir.Fill{ID: b.id(), Dst: to}, &ir.Barrier{})
}
