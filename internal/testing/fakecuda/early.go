//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"bytes"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// early holds what a launch reads before its griddepcontrol.wait, its table of additions and its early arguments, as
// that was when the first of those launches began that may still run at that time.
type early struct {
	table []byte
	args  []saved
}

// reads reports whether a launch reads anything before it waits.
func (l *launch) reads() bool { return l.table != 0 || len(l.Early) > 0 }

// begins sets early of the launches that may begin together with an op. g.mu is held.
func (g *GPU) begins(o *op) {
	if o == nil || o.launch == nil {
		return
	}
	for _, l := range o.launch.watched {
		if l.early != nil {
			continue
		}
		table, ok := g.additions(l)
		if !ok {
			continue // noted when it runs
		}
		l.early = &early{table: table}
		l.addresses(l.moved(table), func(a *air.Arg, at uint64) {
			m := g.memory.find(at)
			if m == nil || !slices.ContainsFunc(l.Early, func(i int) bool { return &l.Input.Kernel.Args[i] == a }) {
				return
			}
			if a.Access != air.Read {
				g.note("kernel %s: argument %d (%s) is written, and read before others have ended", l.kernel.Name, a.Index, a.Name)
			}
			l.early.args = append(l.early.args, save([]*allocation{m})...)
		})
	}
}

// stale reports whether the early arguments have changed since they were read.
func (e *early) stale() bool {
	return slices.ContainsFunc(e.args, func(s saved) bool { return !bytes.Equal(s.data, s.room.bytes()) })
}

// twice runs a launch with its early arguments as they are now, and again as they were when they were read.
// Different results are noted.
func (g *GPU) twice(r *run) uint32 {
	rooms := touched(r)
	before := save(rooms)
	if code := g.dispatch(r); code != success {
		return code
	}
	right := save(rooms)
	restore(before)
	then := *r
	then.memory = slices.Clone(r.memory)
	for _, s := range r.early.args {
		b, err := g.soft.Alloc(backend.BufferSpec{Size: int64(len(s.room.data)), Storage: ir.Shared})
		if err != nil {
			return outOfMemory
		}
		defer b.Close()
		copy(b.Bytes(), s.room.data)
		copy(b.Bytes()[s.room.front:], s.data)
		for i, a := range r.args {
			if r.rooms[i] == s.room && slices.ContainsFunc(r.Early, func(k int) bool { return &r.Input.Kernel.Args[k] == a }) {
				then.memory[i].room = b
			}
		}
	}
	if code := g.dispatch(&then); code != success {
		return code
	}
	for _, s := range right {
		if !bytes.Equal(s.data, s.room.bytes()) {
			g.mu.Lock()
			g.note("kernel %s: what it reads before it waits is written by a launch that may run then", r.kernel.Name)
			g.mu.Unlock()
			break
		}
	}
	return success
}
