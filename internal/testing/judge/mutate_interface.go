package judge

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxc/mlxc/ir"
)

func isRoot(m *ir.Memory) bool { return m.Alias == ir.NoMem }

func changeKind(rng *rand.Rand, g *ir.Graph) bool {
	root, ok := pickMemory(rng, g, isRoot)
	if !ok {
		return false
	}
	kind := ir.MemKind(rng.IntN(5))
	if kind == root.Kind {
		return false
	}
	root.Kind = kind
	if kind == ir.Weight && root.Init.Kind == ir.InitNone {
		root.Init = ir.FillU32(0)
	}
	if kind != ir.Weight && kind != ir.State {
		root.Init = ir.Init{}
	}
	for i := range g.Memories { // an alias has its parent's kind; parents stand first
		if m := &g.Memories[i]; m.Alias != ir.NoMem {
			m.Kind = g.Memories[m.Alias].Kind
		}
	}
	return true
}

// changeSize grows or shrinks a root memory.
func changeSize(rng *rand.Rand, g *ir.Graph) bool {
	m, ok := pickMemory(rng, g, isRoot)
	if !ok {
		return false
	}
	by := unitOf(g)
	if rng.IntN(3) == 0 {
		by = -by
	}
	m.Size += by
	return true
}

func changeContents(rng *rand.Rand, g *ir.Graph) bool {
	m, ok := pickMemory(rng, g, func(m *ir.Memory) bool { return m.Init.Kind != ir.InitNone })
	if !ok {
		return false
	}
	switch m.Init.Kind {
	case ir.InitFill:
		m.Init.Pattern[rng.IntN(4)] ^= 1 << rng.IntN(8)
	case ir.InitRandom:
		m.Init.Seed++
	case ir.InitBlob:
		b, err := m.Init.Blob.Bytes()
		if err != nil || len(b) == 0 {
			return false
		}
		c := append([]byte(nil), b...)
		c[rng.IntN(len(c))] ^= 1
		m.Init.Blob = ir.NewBlob(c)
	}
	return true
}

// changeType changes the declared element type of a memory.
func changeType(rng *rand.Rand, g *ir.Graph) bool {
	m, ok := pickMemory(rng, g, isRoot)
	if !ok || m.Size%4 != 0 || m.Kind == ir.Argument {
		return false
	}
	m.DType = []ir.DType{ir.F32, ir.U32, ir.I32}[rng.IntN(3)]
	if m.Shape = []int64{m.Size / 4}; rng.IntN(2) == 0 {
		m.Shape = []int64{1, m.Size / 4}
	}
	return true
}

func changeStorage(rng *rand.Rand, g *ir.Graph) bool {
	m, ok := pickMemory(rng, g, isRoot)
	if !ok {
		return false
	}
	switch rng.IntN(4) {
	case 0, 1:
		m.Align = 1 << rng.IntN(9)
		return true
	case 2:
		m.Every = !m.Every // only an output may have it
		return true
	}
	m.Storage = ir.Private - m.Storage
	for i := range g.Memories { // an alias has its parent's storage
		if a := &g.Memories[i]; a.Alias != ir.NoMem {
			a.Storage = g.Memories[a.Alias].Storage
		}
	}
	return true
}

func changeBound(rng *rand.Rand, g *ir.Graph) bool {
	if len(g.Params) == 0 {
		return false
	}
	p := &g.Params[rng.IntN(len(g.Params))]
	switch rng.IntN(5) {
	case 4:
		p.Advance++
	case 0:
		p.Min++
	case 1:
		p.Max--
	case 2:
		p.Max++
	default:
		p.Min--
	}
	return true
}

func changeConstraint(rng *rand.Rand, g *ir.Graph) bool {
	if len(g.Constraints) == 0 {
		return false
	}
	i := rng.IntN(len(g.Constraints))
	switch rng.IntN(4) {
	case 0:
		g.Constraints[i].Max--
	case 1:
		g.Constraints[i].Max++
	case 2: // a needless copy, which is harmless
		g.Constraints = append(g.Constraints, g.Constraints[i])
	default:
		g.Constraints = append(g.Constraints[:i], g.Constraints[i+1:]...)
	}
	return true
}

func changeLabels(rng *rand.Rand, g *ir.Graph) bool {
	i, ok := pick(rng, indices(g, func(ir.Node) bool { return true }))
	if !ok {
		return false
	}
	label := fmt.Sprintf("label %d", rng.IntN(100))
	switch n := g.Nodes[i].(type) {
	case *ir.Dispatch:
		n.Label, n.Op = label, "op"
	case *ir.Copy:
		n.Label = label
	case *ir.Fill:
		n.Label = label
	case *ir.Commit:
		n.Label = label
	case *ir.GroupBegin:
		n.Label = label
	default:
		return false
	}
	return true
}

func addGroup(rng *rand.Rand, g *ir.Graph) bool {
	insert(g, 0, &ir.GroupBegin{Label: "group"})
	insert(g, 1+rng.IntN(len(g.Nodes)), &ir.GroupEnd{})
	return true
}

// reorderMemories permutes the list of memories, but keeps every alias after its
// parent.
func reorderMemories(rng *rand.Rand, g *ir.Graph) bool {
	order := rng.Perm(len(g.Memories))
	to := make([]ir.MemID, len(order)) // from old to new
	for k, i := range order {
		to[i] = ir.MemID(k)
	}
	// Aliases go last, in their old order, so that parents stand first.
	var sorted []ir.Memory
	for _, alias := range []bool{false, true} {
		for k := range order {
			i := order[k]
			if alias {
				i = k
			}
			if (g.Memories[i].Alias != ir.NoMem) == alias {
				to[i] = ir.MemID(len(sorted))
				sorted = append(sorted, g.Memories[i])
			}
		}
	}
	for i := range sorted {
		if a := sorted[i].Alias; a != ir.NoMem {
			sorted[i].Alias = to[a]
		}
	}
	g.Memories = sorted
	for _, n := range g.Nodes {
		eachPlace(n, func(m *ir.MemID, _ *ir.Affine) { *m = to[*m] })
	}
	return true
}

// renumber gives the commands other IDs, and changes claims of origin accordingly.
func renumber(rng *rand.Rand, g *ir.Graph) bool {
	at := indices(g, isCommand)
	by := ir.ID(rng.IntN(50))
	perm := rng.Perm(len(at))
	for k, i := range at {
		setID(g.Nodes[i], by+ir.ID(perm[k]))
	}
	return len(at) > 0
}

func renameScratchMemory(rng *rand.Rand, g *ir.Graph) bool {
	m, ok := pickMemory(rng, g, func(m *ir.Memory) bool { return m.Kind == ir.Scratch })
	if ok {
		m.Name += "_again"
	}
	return ok
}

// copyKernel makes a dispatch run the same kernel under another name.
func copyKernel(rng *rand.Rand, g *ir.Graph) bool {
	d, ok := pickNode[*ir.Dispatch](rng, g, nil)
	if ok {
		ownKernel(g, d)
	}
	return ok
}
