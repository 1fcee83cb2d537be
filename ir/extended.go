package ir

// Extended reports whether g has anything that version 1 of the text form or the first version
// of the container cannot express: edges and joins, a host that waits between replays, replays
// in a row, or dispatches that take something from memory.
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
