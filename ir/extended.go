package ir

// Extended reports whether g has anything that the first versions of the two forms,
// text and container, cannot say: edges and joins, an order of replays beyond the
// list's marks, replays in a row, or dispatches that take something from memory.
func (g *Graph) Extended() bool {
	if g.Ordering == ByEdges || g.NextHost {
		return true
	}
	for i := range g.Params {
		if g.Params[i].Advance != 0 {
			return true
		}
	}
	for i := range g.Memories {
		if g.Memories[i].Every {
			return true
		}
	}
	for _, n := range g.Nodes {
		switch n := n.(type) {
		case *Carry:
			return true
		case *Dispatch:
			if n.Indirect != nil {
				return true
			}
		}
	}
	return false
}
