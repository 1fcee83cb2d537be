package ir

// Stats counts what a graph has.
type Stats struct {
	Dispatches  int            `json:"dispatches"`
	Copies      int            `json:"copies"`
	Fills       int            `json:"fills"`
	Carries     int            `json:"carries,omitempty"`
	Barriers    int            `json:"barriers"`
	Commits     int            `json:"commits"`
	Joins       int            `json:"joins,omitempty"`
	Edges       int            `json:"edges,omitempty"`
	Epochs      int            `json:"epochs"`        // between barriers and commits; if serial, the commands; by edges, the longest path
	Unannotated int            `json:"unannotated"`   // dispatches whose effects are unknown
	Largest     int            `json:"largest_epoch"` // commands of one epoch; by edges, the most commands with equally long paths to them
	Kernels     map[string]int `json:"kernels"`       // dispatches of each function
	Ops         map[string]int `json:"ops"`           // dispatches of each op kind
	Bytes       MemoryBytes    `json:"bytes"`
}

// MemoryBytes is the size of all root memories of each kind.
type MemoryBytes struct {
	Weight  int64 `json:"weight"`
	Input   int64 `json:"input"`
	Output  int64 `json:"output"`
	State   int64 `json:"state"`
	Scratch int64 `json:"scratch"`
	// Argument memory exists only after the pass constants.
	Argument int64 `json:"argument,omitempty"`
}

// Stats returns the counts of g.
func (g *Graph) Stats() Stats {
	s := Stats{Kernels: map[string]int{}, Ops: map[string]int{}}
	// tally counts the ops of one kernel. A kernel nearly always serves one op. Its count is added
	// to the map only when the op changes.
	type tally struct {
		op   string
		n    int // dispatches of that op
		rest int // dispatches of earlier ops
	}
	tallies := make([]tally, len(g.Kernels))
	epoch := 0 // commands of the current epoch
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *Dispatch:
			t := &tallies[n.Kernel]
			if t.op != n.Op {
				if t.n > 0 {
					s.Ops[t.op] += t.n
				}
				*t = tally{op: n.Op, rest: t.rest + t.n}
			}
			t.n++
			if !n.Effects.Known() {
				s.Unannotated++
			}
		case *Copy:
			s.Copies++
		case *Fill:
			s.Fills++
		case *Join:
			s.Joins++
			continue
		case *Carry:
			s.Carries++
		case *Barrier:
			s.Barriers++
			epoch = 0
			continue
		case *Commit:
			s.Commits++
			epoch = 0
			continue
		default:
			continue
		}
		if epoch++; epoch == 1 {
			s.Epochs++
		}
		s.Largest = max(s.Largest, epoch)
	}
	for i := range tallies {
		if t := &tallies[i]; t.n > 0 {
			s.Ops[t.op] += t.n
			s.Kernels[g.Kernels[i].Function] += t.n + t.rest
			s.Dispatches += t.n + t.rest
		}
	}
	switch g.Ordering {
	case Serial:
		s.Epochs = s.Dispatches + s.Copies + s.Fills + s.Carries
		s.Largest = min(s.Epochs, 1)
	case ByEdges:
		s.Edges = len(g.Edges)
		levels := g.Levels()
		s.Epochs, s.Largest = len(levels), 0
		for _, level := range levels {
			s.Largest = max(s.Largest, len(level))
		}
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != NoMem {
			continue
		}
		switch m.Kind {
		case Weight:
			s.Bytes.Weight += m.Size
		case Input:
			s.Bytes.Input += m.Size
		case Output:
			s.Bytes.Output += m.Size
		case State:
			s.Bytes.State += m.Size
		case Scratch:
			s.Bytes.Scratch += m.Size
		case Argument:
			s.Bytes.Argument += m.Size
		}
	}
	return s
}
