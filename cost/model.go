package cost

import (
	"github.com/mlxc/mlxc/ir"
)

// Seconds is a modelled time.
type Seconds float64

// Model holds what things cost.
type Model struct {
	Name             string
	Bandwidth        float64 // bytes a second that are attained
	Rate             float64 // operations of terms a second that are attained
	Cores            int
	Launch           Seconds // of a command that runs alone
	ConcurrentLaunch Seconds // of one among others of its epoch
	Barrier          Seconds
	CommandBuffer    Seconds // between two command buffers, on the GPU
	Event            Seconds // of a commit that orders
	Encode           Seconds // a command, on the host
	Latency          Seconds // of a kernel that has no figures of its own: what it takes beside its launch and its work
	Kernels          map[string]Kernel

	// What `mlxreplay doctor` finds out beside. Nothing of it changes modelled times.
	Device string // the GPU that the profile was measured on
	Litmus Litmus
	Plans  map[string]PlanTimes // by name: "concurrent", "indirect"; "chain", "edges-waiting"
}

// Litmus is what a GPU was seen to keep where Metal promises nothing, or nobody had tried. False is
// what a GPU that broke it has, and one that was not tested.
type Litmus struct {
	// Fences order encoders over memory whose hazards Metal does not track.
	Fences bool
	// IndirectBarriers: a barrier inside an indirect command buffer orders every command behind it,
	// and not its own alone.
	IndirectBarriers bool
}

// Kernel is what one kernel function was measured to take, alone.
type Kernel struct {
	Fixed   Seconds
	PerByte Seconds
}

// Epoch adds up commands that run concurrently. The zero value is empty.
type Epoch struct {
	bytes, operations float64
	repeated          Repeated
	longest           Seconds
	count             int
}

// Add adds a command.
func (p *Epoch) Add(w Work) {
	p.bytes += w.Bytes
	p.operations += w.Operations
	p.repeated.Bytes += w.Repeated.Bytes
	p.repeated.Operations += w.Repeated.Operations
	p.longest = max(p.longest, w.Alone)
	p.count++
}

// Len returns the number of commands.
func (p *Epoch) Len() int { return p.count }

// Of returns the time that the epoch takes.
func (m *Model) Of(p Epoch) Seconds {
	return max(m.busy(p.bytes, p.operations)+m.repeat(p.repeated), p.longest, m.ConcurrentLaunch*Seconds(p.count))
}

// busy is how long the whole chip takes to move so many bytes and, beside that, do so
// many operations: a roofline (Williams, Waterman, Patterson 2009).
func (m *Model) busy(bytes, operations float64) Seconds {
	return Seconds(max(bytes/m.Bandwidth, operations/m.Rate))
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
