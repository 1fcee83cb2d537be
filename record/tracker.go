package record

import "github.com/mlxc/mlxc/ir"

// tracker remembers the byte ranges that were bound since the last barrier, as
// the range trackers of ggml and mlx-native do: whole views, for every value
// of the params, read or written. It is not exact (a strided write counts as
// its hull); package passes is.
type tracker struct {
	g             *ir.Graph
	reads, writes []span
}

type span struct {
	mem     ir.MemID
	lo, end int64
}

func (t *tracker) reset() { t.reads, t.writes = t.reads[:0], t.writes[:0] }

func (t *tracker) span(v ir.View) span {
	root, off := t.g.Root(v.Mem)
	lo, _, _ := t.g.Range(v.Off)
	_, end, _ := t.g.Range(v.End())
	return span{root, lo + off, end + off}
}

func meets(s span, list []span) bool {
	for _, x := range list {
		if s.mem == x.mem && s.lo < x.end && x.lo < s.end {
			return true
		}
	}
	return false
}

// each calls f with the span of every buffer that the arguments bind.
func (t *tracker) each(k *ir.Kernel, args []ir.Binding, f func(s span, write bool)) {
	for _, b := range args {
		if b.Kind != ir.BindView {
			continue
		}
		if a, ok := k.Arg(b.Slot); ok {
			f(t.span(b.View), a.Access != ir.ReadArg)
		}
	}
}

func (t *tracker) conflicts(k *ir.Kernel, args []ir.Binding) bool {
	found := false
	t.each(k, args, func(s span, write bool) {
		found = found || meets(s, t.writes) || write && meets(s, t.reads)
	})
	return found
}

func (t *tracker) add(k *ir.Kernel, args []ir.Binding) {
	t.each(k, args, func(s span, write bool) {
		if t.g.Memories[s.mem].Kind.ReadOnly() {
			return
		}
		if write {
			t.writes = append(t.writes, s)
		} else {
			t.reads = append(t.reads, s)
		}
	})
}
