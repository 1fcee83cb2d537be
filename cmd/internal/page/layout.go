package page

import "github.com/mlxc/mlxc/ir"

// maxRows is how many commands of an epoch stand in one column. Their order has no meaning, so
// that a wide epoch may take several columns, and the page scrolls in one direction only.
const maxRows = 8

// layout says where the commands of a graph stand. Commands are numbered by their places in it:
// epoch by epoch, and in an epoch in the order of the list.
type layout struct {
	nodes []int32 // by command: its index in the graph's list
	place []int32 // by command in the order of the list, joins included: its number here; -1 for a join
	first []int32 // by epoch, with one more at the end: its first command
	ends  []byte  // by epoch: what ends it, as a letter: Barrier, Commit, Serial, Edges or nothing (-)
	// x is where each epoch begins, in columns, with one more at the end. It takes columns of it.
	x []int32
	// from and to are the same where an epoch stands under what it was made of; nil for a recording.
	from, to []int32
}

// newLayout finds the epochs of g and gives them columns.
func newLayout(g *ir.Graph) *layout {
	l := &layout{first: []int32{0}}
	end := func(by byte) {
		if n := int32(len(l.nodes)); n > l.first[len(l.first)-1] {
			l.first, l.ends = append(l.first, n), append(l.ends, by)
		}
	}
	if g.Ordering == ir.ByEdges {
		for _, level := range g.Levels() {
			l.nodes = append(l.nodes, level...)
			end('E')
		}
	} else {
		for i, n := range g.Nodes {
			switch n.(type) {
			case *ir.Barrier:
				end('B')
			case *ir.Commit:
				end('C')
			case *ir.Join:
			case ir.Command:
				l.nodes = append(l.nodes, int32(i))
				if g.Ordering == ir.Serial {
					end('S')
				}
			}
		}
		end('-')
	}
	at := make([]int32, len(g.Nodes)) // by index in the list
	for k, i := range l.nodes {
		at[i] = int32(k)
	}
	for i, n := range g.Nodes {
		if _, ok := n.(*ir.Join); ok {
			l.place = append(l.place, -1)
		} else if _, ok := n.(ir.Command); ok {
			l.place = append(l.place, at[i])
		}
	}
	l.widths()
	return l
}

// widths places the epochs one after another.
func (l *layout) widths() {
	l.x = append(make([]int32, 0, len(l.first)), 0)
	for e := range l.epochs() {
		l.x = append(l.x, l.x[e]+l.columns(e))
	}
}

func (l *layout) epochs() int { return len(l.first) - 1 }

// columns returns how many columns an epoch takes at least.
func (l *layout) columns(e int) int32 { return (l.first[e+1] - l.first[e] + maxRows - 1) / maxRows }

// cut leaves out what is behind the first n commands.
func (l *layout) cut(n int) {
	if n >= len(l.nodes) {
		return
	}
	for k, p := range l.place {
		if int(p) >= n {
			l.place[k] = -1
		}
	}
	l.nodes = l.nodes[:n]
	e := 0
	for e < l.epochs() && int(l.first[e+1]) <= n {
		e++
	}
	l.first, l.ends = l.first[:e+1], l.ends[:e]
	if int(l.first[e]) < n {
		l.first, l.ends = append(l.first, int32(n)), append(l.ends, '-')
	}
	l.widths()
}

// align places the epochs of l under those of before. images are, by command of l, the commands
// before that it stands for. An epoch reaches from the first column of what it or an epoch behind it
// was made of to the last of what it was made of, but stays behind the epoch before it and does not
// reach into what the epochs behind it were made of. Epochs keep their order, and each has its
// columns at least.
func (l *layout) align(before *layout, images [][]int32) {
	epoch := make([]int32, len(before.nodes))
	for e := range before.epochs() {
		for c := before.first[e]; c < before.first[e+1]; c++ {
			epoch[c] = int32(e)
		}
	}
	const nowhere = int32(1<<31 - 1)
	n := l.epochs()
	lo, hi := make([]int32, n), make([]int32, n)
	for e := range n {
		lo[e], hi[e] = nowhere, -1
		for c := l.first[e]; c < l.first[e+1]; c++ {
			for _, j := range images[c] {
				lo[e], hi[e] = min(lo[e], before.x[epoch[j]]), max(hi[e], before.x[epoch[j]+1])
			}
		}
	}
	// behind[e] is the first column that something behind epoch e was made of.
	behind := make([]int32, n+1)
	behind[n] = nowhere
	for e := n - 1; e >= 0; e-- {
		behind[e] = min(behind[e+1], lo[e])
	}
	l.from, l.to = make([]int32, n), make([]int32, n)
	at := int32(0)
	for e := range n {
		l.from[e] = at
		if lo[e] != nowhere {
			l.from[e] = max(at, behind[e])
		}
		l.to[e] = max(l.from[e]+l.columns(e), min(hi[e], behind[e+1]))
		at = l.to[e]
	}
}
