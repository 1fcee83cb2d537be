package hazard

import "github.com/mlxc/mlxc/ir"

// Barriers returns how many barriers the graph needs beside its commits as it stands: those
// between its commands, and one behind the last of them if the next replay needs it,
// whether it is there or left to the host, which may wait between replays. A graph
// ordered by edges needs none.
func (t *Table) Barriers() (count int) {
	n := t.Len()
	if t.g.Ordering == ir.ByEdges || n == 0 {
		return 0
	}
	// No barrier or commit stands among the commands before first, and none among those
	// from last on.
	first, last, i := n, 0, 0
	open := true // no commit stands behind the last command or before the first
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

// meetsNext reports whether a command from last on conflicts with one before first of the
// next replay.
func (t *Table) meetsNext(first, last int) bool {
	// Mostly it is a command or two on each side.
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
