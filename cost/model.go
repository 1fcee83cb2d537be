package cost

import (
	"regexp"
	"sort"

	"github.com/mlxc/mlxc/ir"
)

// Seconds is a modelled time.
type Seconds float64

// Model holds the figures of a chip or profile, from which times are modelled.
type Model struct {
	Name             string
	Bandwidth        float64 // attained, in bytes a second
	Rate             float64 // attained, in operations of terms a second
	Cores            int
	Launch           Seconds // of a command that runs alone
	ConcurrentLaunch Seconds // of a command that runs beside others of its epoch
	Barrier          Seconds
	CommandBuffer    Seconds // between two command buffers, on the GPU
	Event            Seconds // of a commit that orders commands
	Encode           Seconds // the host's time for one command
	Latency          Seconds // of a kernel without figures of its own: its time beyond launch and work
	Kernels          map[string]Kernel
	// Filling are the names of kernels whose blocks take the work of one threadgroup after another, one block a core: no more than these repeat anything.
	// nil: there are none.
	Filling *regexp.Regexp

	// The fields below are found by `mlxreplay doctor` and do not change modelled times.
	Device string // the GPU that the profile was measured on
	Litmus Litmus
	Plans  map[string]PlanTimes // by name: "concurrent", "indirect"; "chain", "edges-waiting"
}

// Litmus says which orderings a GPU was seen to keep where Metal promises nothing or the question was open.
// A field is false if the GPU broke the ordering or was not tested.
type Litmus struct {
	// Fences: a fence orders encoders over memory whose hazards Metal does not track.
	Fences bool
	// IndirectBarriers: a barrier inside an indirect command buffer orders all commands after it,
	// not only the command to which it belongs.
	IndirectBarriers bool
}

// Kernel is the measured time of one kernel function that runs alone: a line, and points where that was found to be wrong by more than a few percent.
type Kernel struct {
	Fixed   Seconds
	PerByte Seconds
	Points  []Point // fewer bytes first
}

// Point is the time of runs that moved about so many bytes.
type Point struct {
	Bytes float64
	Time  Seconds
}

// At is the time of a run that moves so many bytes: what lies between two points, or the line's time, which beyond the outer points is as wrong as it is at these.
func (k *Kernel) At(bytes float64) Seconds {
	line := func(x float64) Seconds { return k.Fixed + k.PerByte*Seconds(x) }
	n := len(k.Points)
	if n == 0 {
		return line(bytes)
	}
	i := sort.Search(n, func(i int) bool { return k.Points[i].Bytes >= bytes })
	if i > 0 && i < n {
		a, b := k.Points[i-1], k.Points[i]
		return a.Time + (b.Time-a.Time)*Seconds((bytes-a.Bytes)/(b.Bytes-a.Bytes))
	}
	p := k.Points[min(i, n-1)]
	if at := line(p.Bytes); at > 0 {
		return line(bytes) * p.Time / at
	}
	return p.Time
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

// busy is how long the whole chip takes to move the given bytes and, concurrently, do the given
// operations: a roofline (Williams, Waterman, Patterson 2009).
func (m *Model) busy(bytes, operations float64) Seconds {
	return Seconds(max(bytes/m.Bandwidth, operations/m.Rate))
}

// Time is how long one replay of a graph takes, by part.
type Time struct {
	Commands Seconds `json:"commands"` // sum over epochs, without what separates them
	Barriers Seconds `json:"barriers"`
	Buffers  Seconds `json:"buffers"` // boundaries of command buffers, events
	Encode   Seconds `json:"encode"`  // on the host, concurrent with the GPU
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
		// Nodes whose longest path of dependences has the same length run together; a wait between two
		// such levels costs as much as a barrier.
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
				if g.Ordering == ir.Serial { // a command of a serial graph runs alone
					end()
					t.Barriers += m.Barrier
				}
			}
		}
	}
	end()
	return t
}
