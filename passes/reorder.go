package passes

import (
	"context"
	"math"
	"math/bits"

	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/ir"
)

type reorderOptions struct{ lookahead int }

var reorderPass = New(Pass{Name: "reorder", Summary: "move commands up into earlier epochs, as ggml and mlx-native do, made sound"}, reorder,
	Int("lookahead", 64, 0, math.MaxInt32, "commands that are looked at behind the one that ends an epoch", func(o *reorderOptions) *int { return &o.lookahead }))

// reorder is the greedy algorithm of ggml's Metal backend and of mlx-native, made sound. Commands
// are taken in recorded order into an epoch. The first command that conflicts with the epoch, the
// head, ends it. Before that, each of the next lookahead commands behind the head moves up into the
// epoch if it conflicts neither with the epoch nor with any command that it would cross.
//
// Conflicts are decided by bytes, whatever the kind of operation. A command of unknown effects
// neither moves nor is crossed. No command leaves its command buffer.
//
// The pass does not compare commands to find those that may move. A command is free when each
// command for which it must wait is in an epoch that has ended; ending an epoch frees the commands
// that waited only for it. Conflicts are found when the window reaches a command, and the window is
// a few words of a bit set, so the pass takes time in proportion to the conflicts.
func reorder(ctx context.Context, s *State, o reorderOptions) error {
	g := s.Graph
	s.changed = ir.ListChange
	t := hazard.NewStream(ctx, g)
	w := newWindow(t)
	l := relist(g, t.Len())
	epoch := make([]int32, 0, 64)
	head, begins := int32(-1), false
	take := func(i int32) {
		w.take(i)
		epoch = append(epoch, i)
		l.command(i, t.Node(int(i)), begins)
		begins = false
	}
	up := func(i int32) {
		if !s.silent() {
			// The head is the first command that still waits, and i crosses the head only.
			s.Did(t.Node(int(i)), "moved up before %s", g.Describe(t.Node(int(head))))
		}
		take(i)
	}
	for _, b := range commandBuffers(g) {
		for head = b.first; head < b.end; head++ {
			if w.taken(head) {
				continue
			}
			if !w.free(head) {
				n := w.each(head, b.end, o.lookahead, up)
				if n == 0 && !s.silent() {
					s.Not(t.Node(int(head)), "ends the epoch before it, and no command of the %d behind it can move up", o.lookahead)
				}
				w.end(epoch)
				epoch, begins = epoch[:0], true
			}
			take(head)
			if !s.silent() && t.Pillar(int(head)) {
				s.Not(t.Node(int(head)), "nothing moves across it: its effects are unknown")
			}
		}
		w.end(epoch)
		epoch, begins = epoch[:0], false
		for _, c := range b.commits {
			l.commit(c)
		}
	}
	g.Nodes = l.finish()
	return nil
}

// window holds the commands that are in no epoch yet, and which of them are free.
type window struct {
	stream  *hazard.Stream
	waiting []uint64 // bit set of the commands that are in no epoch
	ready   []uint64 // bit set of the free commands that the window has reached
	skip    []int32  // by word of waiting: a later word; all words between the two are empty
	found   func(i int32)
}

func newWindow(t *hazard.Stream) *window {
	n := t.Len()
	w := &window{stream: t}
	words := n/64 + 1
	w.waiting, w.ready, w.skip = make([]uint64, words), make([]uint64, words), make([]int32, words)
	for i := range w.skip {
		w.skip[i] = int32(i) + 1
		w.waiting[i] = ^uint64(0)
	}
	w.waiting[words-1] = 1<<(n%64) - 1
	w.found = func(i int32) { w.ready[i/64] |= 1 << (i % 64) }
	return w
}

func (w *window) taken(i int32) bool { return w.waiting[i/64]>>(i%64)&1 == 0 }

// reach adds the commands before end to the window.
func (w *window) reach(end int32) {
	for i := w.stream.Entered(); i < end; i++ {
		if w.stream.Enter() {
			w.found(i)
		}
	}
}

func (w *window) free(i int32) bool {
	w.reach(i + 1)
	return w.ready[i/64]>>(i%64)&1 != 0
}

func (w *window) take(i int32) {
	w.waiting[i/64] &^= 1 << (i % 64)
	w.ready[i/64] &^= 1 << (i % 64)
}

// end frees the commands that waited only for commands of an epoch.
func (w *window) end(epoch []int32) {
	for _, i := range epoch {
		w.stream.End(i, w.found)
	}
}

// each calls up with every free command among the first n waiting commands between head and end. It
// returns the number of calls.
func (w *window) each(head, end int32, n int, up func(int32)) (found int) {
	at := head + 1
	for n > 0 && at < end {
		k := at / 64
		word := w.waiting[k] >> (at % 64) << (at % 64)
		if word == 0 {
			at = w.after(k) * 64
			continue
		}
		if last := end - k*64; last < 64 {
			word &= 1<<last - 1
		}
		// Drop the commands beyond the first n.
		for extra := bits.OnesCount64(word) - n; extra > 0; extra-- {
			word &^= 1 << (63 - bits.LeadingZeros64(word))
		}
		n -= bits.OnesCount64(word)
		w.reach(k*64 + 64 - int32(bits.LeadingZeros64(word)))
		for free := word & w.ready[k]; free != 0; free &= free - 1 {
			found++
			up(k*64 + int32(bits.TrailingZeros64(free)))
		}
		at = (k + 1) * 64
	}
	return found
}

// after returns the first word after k in which a command waits, or the number of words. An empty
// word stays empty, so links across it are shortened on the way (path compression, Tarjan 1975).
func (w *window) after(k int32) int32 {
	end := int32(len(w.waiting))
	to := w.skip[k]
	for to < end && w.waiting[to] == 0 {
		to = w.skip[to]
	}
	for k < to {
		k, w.skip[k] = w.skip[k], to
	}
	return to
}
