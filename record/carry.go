package record

import "github.com/mlxc/mlxc/ir"

// Advance makes the u32 param called name change by step from each replay of a submission
// to the next ([ir.Param]). A submission is a number of replays that are handed to the
// device together.
func (e *Encoder) Advance(name string, step int64) {
	if e.err != nil {
		return
	}
	i, ok := e.g.ParamNamed(name)
	if !ok {
		e.fail("Advance: there is no param $%s", ir.QuoteName(name))
		return
	}
	p := e.g.Params[i]
	p.Advance = step
	if e.valid(&ir.Graph{Params: []ir.Param{p}}) {
		e.g.Params[i] = p
	}
}

// Every makes a submission keep what each of its replays leaves in output t, in place of
// only what the last replay leaves.
func (e *Encoder) Every(t Tensor) {
	if e.err != nil || !e.usable("Every", t) {
		return
	}
	root, _ := e.g.Root(t.Mem)
	if e.g.Memories[root].Kind != ir.Output {
		e.fail("Every: %s is not an output", e.tensorName(t))
		return
	}
	e.g.Memories[root].Every = true
}

// Carry copies src, a part of an output, to dst, a part of an input or a state, for the
// next replay of the same submission ([ir.Carry]). A recording that is executed is a single
// replay, so there Carry copies nothing. Carry places a barrier on both sides of itself,
// because the next replay begins with what it writes.
func (e *Encoder) Carry(dst, src Tensor, label string) ir.ID {
	if !e.usable(label, dst, src) {
		return 0
	}
	e.Barrier()
	c := &ir.Carry{ID: e.next, Dst: dst.view(), Src: src.view(), Label: label}
	e.command(c)
	e.Barrier()
	return c.ID
}
