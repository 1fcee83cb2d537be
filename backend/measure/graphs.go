package measure

import (
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Wide is how many kernels of a forked graph run beside one another.
const Wide = 4

const smallest = "vv_Addfloat32"

// add dispatches an addition of n floats.
func add(b *ir.Builder, k ir.KernelID, n int64, left, right, to ir.View) *ir.Dispatch {
	return b.Dispatch(ir.Dispatch{
		Kernel: k, GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(n), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{32, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, left), ir.BufferArg(1, right), ir.BufferArg(2, to)},
		Effects: &ir.Effects{
			Complete: true, Reads: []ir.Region{left.Contiguous(), right.Contiguous()}, Writes: []ir.Write{{Region: to.Contiguous(), Must: true}},
		},
	})
}

func begin(name string, bytes int64) (*ir.Builder, ir.MemID, ir.KernelID) {
	b := ir.NewBuilder(name)
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: bytes})
	return b, x, b.Kernel(msl.Declarations(smallest)[0].Kernel(smallest))
}

// Row is a graph of n smallest kernels, each of which reads what the one before it wrote. It is ordered by
// edges, or by barriers.
func Row(n int, edges bool) *ir.Graph {
	b, x, k := begin("row", 256*int64(n+1))
	var last *ir.Dispatch
	for i := range int64(n) {
		if i > 0 && !edges {
			b.Barrier()
		}
		d := add(b, k, 32, ir.ViewOf(x, 256*i, 128), ir.ViewOf(x, 256*i, 128), ir.ViewOf(x, 256*(i+1), 128))
		if edges && last != nil {
			b.After(d, last)
		}
		last = d
	}
	return b.Unfinished()
}

// Forked is a graph of n times [Wide] kernels and one that reads what they wrote, ordered by edges.
func Forked(n int) *ir.Graph {
	b, x, k := begin("forked", 512*int64(2*n+1))
	var last ir.Command
	for i := range int64(n) {
		from, middle, to := 1024*i, 1024*i+512, 1024*i+1024
		var beside []ir.Command
		for j := range int64(Wide) {
			d := add(b, k, 32, ir.ViewOf(x, from+128*j, 128), ir.ViewOf(x, from+128*((j+1)%Wide), 128), ir.ViewOf(x, middle+128*j, 128))
			if last != nil {
				b.After(d, last)
			}
			beside = append(beside, d)
		}
		join := add(b, k, 128, ir.ViewOf(x, middle, 512), ir.ViewOf(x, middle, 512), ir.ViewOf(x, to, 512))
		b.After(join, beside...)
		last = join
	}
	return b.Unfinished()
}

// between is what separates the dispatches of a graph.
type between int

const (
	nothing  between = iota
	some             // a barrier after every fourth dispatch
	barriers         // a barrier after each dispatch
	commits          // commits, so that there are as many command buffers as buffers says
)

// beside is a graph of n smallest kernels, none of which touches what another writes.
func beside(n int, what between) *ir.Graph {
	b, x, k := begin([...]string{"beside", "some", "behind", "cut"}[what], 256)
	to := b.Memory(ir.Memory{Name: "y", Kind: ir.State, Size: int64(256 * n)})
	for i := range n {
		add(b, k, 32, ir.ViewOf(x, 0, 128), ir.ViewOf(x, 128, 128), ir.ViewOf(to, int64(256*i), 128))
		switch {
		case i == n-1:
		case what == barriers, what == some && i%4 == 3:
			b.Barrier()
		case what == commits && i%(n/buffers) == n/buffers-1:
			b.Commit(ir.OrderNone, "")
		}
	}
	return b.Unfinished()
}

// copied is a graph that copies so many bytes from one memory to another.
func copied(bytes int64) *ir.Graph {
	b := ir.NewBuilder("copied")
	from := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: bytes})
	to := b.Memory(ir.Memory{Name: "y", Kind: ir.State, Size: bytes})
	b.Copy(ir.ViewOf(to, 0, bytes), ir.ViewOf(from, 0, bytes), "")
	return b.Unfinished()
}
