package cost

import (
	"github.com/mlxc/mlxc/ir"
)

// Seconds is a modelled time.
type Seconds float64

// Model holds what things cost. Bandwidth is in bytes a second, attainable
// ones.
type Model struct {
	Name             string
	Bandwidth        float64
	Cores            int
	Launch           Seconds // of a command that runs alone
	ConcurrentLaunch Seconds // of one among others of its epoch
	Barrier          Seconds
	CommandBuffer    Seconds // between two command buffers, on the GPU
	Event            Seconds // of a commit that orders
	Encode           Seconds // a command, on the host
	Kernels          map[string]Kernel
}

// Kernel is what one kernel function was measured to take, alone.
type Kernel struct {
	Fixed   Seconds
	PerByte Seconds
}

// Work is what one command costs.
type Work struct {
	Bytes float64 // moved
	Alone Seconds
}

// Estimator is a model applied to one graph.
type Estimator struct {
	Model
	g      *ir.Graph
	params []uint32
}

// For returns m for the commands of g, with each param in the middle of its
// bounds.
func (m Model) For(g *ir.Graph) *Estimator {
	e := &Estimator{Model: m, g: g, params: make([]uint32, len(g.Params))}
	for i, p := range g.Params {
		if p.Type == ir.U32 {
			e.params[i] = uint32((p.Min + p.Max) / 2)
		}
	}
	return e
}

// Param returns the value of a param that times are modelled at.
func (e *Estimator) Param(p ir.ParamID) uint32 { return e.params[p] }

// Dispatch returns the time that a command of g takes alone; 0 for marks.
func (m Model) Dispatch(g *ir.Graph, n ir.Node) Seconds { return m.For(g).Work(n).Alone }

// Work returns the cost of a command; nothing for marks.
func (e *Estimator) Work(n ir.Node) Work {
	var w Work
	groups := 1.0
	switch n := n.(type) {
	case *ir.Dispatch:
		w.Bytes = e.bytes(n)
		groups = e.groups(n)
		if k, ok := e.Kernels[e.g.Kernels[n.Kernel].Function]; ok {
			w.Alone = k.Fixed + k.PerByte*Seconds(w.Bytes)
			return w
		}
	case *ir.Copy:
		w.Bytes = 2 * float64(n.Dst.Len.Eval(e.params))
		groups = w.Bytes / copyGroup
	case *ir.Carry:
		w.Bytes = 2 * float64(n.Dst.Len.Eval(e.params))
		groups = w.Bytes / copyGroup
	case *ir.Fill:
		w.Bytes = float64(n.Dst.Len.Eval(e.params))
		groups = w.Bytes / copyGroup
	default:
		return w
	}
	share := min(1, max(1, groups)/float64(max(1, e.Cores)))
	w.Alone = e.Launch + Seconds(w.Bytes/(e.Bandwidth*share))
	return w
}

// copyGroup is the number of bytes that a threadgroup of a blit is taken to
// move: 1024 threads of 16 bytes. An assumption: nobody documents it.
const copyGroup = 16 << 10

// perThread is the number of bytes of one argument that a thread reads at most.
// A gather may read any row of a table, so its effect is the whole table; but
// no thread of a kernel that is written to be fast reads more than this. An
// assumption: those of our library read 30 to 200 in a model's graph.
const perThread = 1 << 10

func (e *Estimator) threads(d *ir.Dispatch) float64 {
	n := 1.0
	for i, x := range d.Grid {
		if x.Div < 1 {
			continue
		}
		v := float64(x.Eval(e.params))
		if d.GridKind == ir.Threadgroups {
			v *= float64(d.Threadgroup[i])
		}
		n *= v
	}
	return n
}

func (e *Estimator) groups(d *ir.Dispatch) float64 {
	n := 1.0
	for i, x := range d.Grid {
		if x.Div < 1 {
			continue
		}
		v := float64(x.Eval(e.params))
		if d.GridKind == ir.Threads {
			v /= float64(max(1, d.Threadgroup[i]))
		}
		n *= max(v, 1.0/1024)
	}
	return n
}

func (e *Estimator) bytes(d *ir.Dispatch) float64 {
	total := 0.0
	if !d.Effects.Known() {
		// Nobody knows; what it binds is the best guess.
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind == ir.BindView {
				total += float64(b.View.Len.Eval(e.params))
			}
		}
		return total
	}
	most := e.threads(d) * perThread
	for i := range d.Effects.Reads {
		total += min(e.region(&d.Effects.Reads[i]), most)
	}
	for i := range d.Effects.Writes {
		w := &d.Effects.Writes[i]
		n := e.region(&w.Region)
		if !w.Must {
			n *= 2 // it reads them too
		}
		total += n
	}
	return total
}

func (e *Estimator) region(r *ir.Region) float64 {
	n := max(0, float64(r.Run.Eval(e.params)))
	for _, d := range r.Dims {
		if d.Stride != 0 { // repeating the same bytes moves them once
			n *= max(0, float64(d.Count.Eval(e.params)))
		}
	}
	return min(n, float64(e.g.Memories[r.Mem].Size))
}

// Epoch adds up commands that run concurrently. The zero value is empty.
type Epoch struct {
	bytes   float64
	longest Seconds
	count   int
}

// Add adds a command.
func (p *Epoch) Add(w Work) {
	p.bytes += w.Bytes
	p.longest = max(p.longest, w.Alone)
	p.count++
}

// Len returns the number of commands.
func (p *Epoch) Len() int { return p.count }

// Of returns the time that the epoch takes.
func (m *Model) Of(p Epoch) Seconds {
	return max(Seconds(p.bytes/m.Bandwidth), p.longest, m.ConcurrentLaunch*Seconds(p.count))
}

// Time is what a graph takes, and where.
type Time struct {
	Commands Seconds `json:"commands"` // epochs without what separates them
	Barriers Seconds `json:"barriers"`
	Buffers  Seconds `json:"buffers"` // boundaries of command buffers, events
	Encode   Seconds `json:"encode"`  // on the host, beside the GPU
	Bytes    float64 `json:"bytes"`
}

// GPU returns the time on the GPU.
func (t Time) GPU() Seconds { return t.Commands + t.Barriers + t.Buffers }

// Microseconds returns s in µs.
func (s Seconds) Microseconds() float64 { return float64(s) * 1e6 }

// Graph returns the time of one replay of g.
func (m Model) Graph(g *ir.Graph) Time {
	e := m.For(g)
	var t Time
	var p Epoch
	end := func() {
		t.Commands += m.Of(p)
		p = Epoch{}
	}
	if g.Ordering == ir.ByEdges {
		// What waits for equally long paths runs together; to wait costs what a barrier
		// does.
		for i, level := range g.Levels() {
			if i > 0 {
				t.Barriers += m.Barrier
			}
			for _, k := range level {
				w := e.Work(g.Nodes[k])
				p.Add(w)
				t.Bytes += w.Bytes
				t.Encode += m.Encode
			}
			end()
		}
		for _, n := range g.Nodes {
			if _, ok := n.(*ir.Commit); ok {
				t.Buffers += m.CommandBuffer
			}
		}
		return t
	}
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *ir.Barrier:
			if g.Ordering == ir.Serial {
				continue
			}
			end()
			t.Barriers += m.Barrier
		case *ir.Commit:
			end()
			t.Buffers += m.CommandBuffer
			if n.Order != ir.OrderNone {
				t.Buffers += m.Event
			}
		default:
			if _, ok := n.(ir.Command); ok {
				w := e.Work(n)
				p.Add(w)
				t.Bytes += w.Bytes
				t.Encode += m.Encode
				if g.Ordering == ir.Serial { // nothing runs beside it
					end()
					t.Barriers += m.Barrier
				}
			}
		}
	}
	end()
	return t
}
