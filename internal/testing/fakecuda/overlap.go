//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"bytes"
	"slices"

	"github.com/mlxc/mlxc/internal/air"
)

// saved is a copy of an allocation's contents.
type saved struct {
	room *allocation
	data []byte
}

func save(rooms []*allocation) (out []saved) {
	for _, m := range rooms {
		out = append(out, saved{m, bytes.Clone(m.bytes())})
	}
	return out
}

func restore(list []saved) {
	for _, s := range list {
		copy(s.room.bytes(), s.data)
	}
}

// touched returns the allocations that launches may write.
func touched(list ...*run) (out []*allocation) {
	for _, r := range list {
		for i, m := range r.rooms {
			if m != nil && r.args[i].Access != air.Read && !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// together runs two launches as if concurrently: neither sees what the other writes, and of the bytes that both
// change each is taken from one of them at random.
func (g *GPU) together(a, b *launch) uint32 {
	x, code := g.prepared(a)
	if code != success {
		return code
	}
	y, code := g.prepared(b)
	if code != success {
		return code
	}
	if x == nil || y == nil || a.early != nil || b.early != nil {
		return max(g.execute(a), g.execute(b))
	}
	rooms := touched(x, y)
	before := save(rooms)
	if code := g.dispatch(x); code != success {
		return code
	}
	first := save(rooms)
	restore(before)
	if code := g.dispatch(y); code != success {
		return code
	}
	for k, s := range first {
		now, was := s.room.bytes(), before[k].data
		for i, v := range s.data {
			if v != was[i] && (now[i] == was[i] || g.rng.IntN(2) == 0) {
				now[i] = v
			}
		}
	}
	return success
}

// prepared decodes a launch with its table as that is now; nil: its grid is empty.
func (g *GPU) prepared(l *launch) (*run, uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	table, ok := g.additions(l)
	if !ok {
		return nil, illegalAddress
	}
	r, code := g.resolve(l, l.moved(table))
	if code == success && r.nothing {
		r = nil
	}
	return r, code
}
