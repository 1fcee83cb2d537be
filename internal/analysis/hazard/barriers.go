package hazard

import "github.com/mlxc/mlxc/ir"

// Barriers returns how many barriers the graph needs, as it stands, besides its
// commits. It counts those between its commands and, if the next replay needs one, the
// barrier after the last command, whether that is in the graph or left to a host that
// waits between replays. A graph that is ordered by edges needs none.
func (t *Table) Barriers() (count int) {
	n := t.Len()
	if t.g.Ordering == ir.ByEdges || n == 0 {
		return 0
	}
	// No barrier or commit stands among the commands before `first`, and none among
	// those from `last` on.
	first, last, i := n, 0, 0
	open := true // no commit stands after the last command or before the first
	for _, x := range t.g.Nodes {
		switch x.(type) {
		case *ir.Barrier:
			if i == n {
				continue
			}
			count++
		case *ir.Commit:
			open = open && i > 0 && i < n
		case ir.Command:
			i++
			continue
		default:
			continue
		}
		if i > 0 && i < n {
			first, last = min(first, i), i
		}
	}
	if open && t.meetsNext(first, last) {
		count++
	}
	return count
}

// meetsNext reports whether a command from last on conflicts with a command before
// first of the next replay.
func (t *Table) meetsNext(first, last int) bool {
	// There are mostly one or two commands on each side.
	const few = 1 << 12
	n := t.Len()
	if pairs := int64(first) * int64(n-last); pairs <= few {
		for j := range first {
			for i := last; i < n; i++ {
				if t.BetweenReplays(i, j) != None {
					return true
				}
			}
		}
		return false
	}
	for _, p := range t.Latest(nil)[n : n+first] {
		if int(p) >= last && int(p) < n {
			return true
		}
	}
	return false
}
