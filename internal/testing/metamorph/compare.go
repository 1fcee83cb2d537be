package metamorph

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/replay"
)

// Replays is the number of consecutive replays that are run.
const Replays = 3

// Compare runs both graphs once for each element of params, as consecutive replays, and
// returns an error that says how their results differ, or nil. schedules is the number
// of orders in which the replays are run as one stream; the written order and the most
// adverse one are among them. The commands of before must run on d, and the effects of
// its kernels must be declared.
func Compare(d backend.Device, before, after *ir.Graph, params [][]uint32, schedules int, rng *rand.Rand) error {
	masks, err := definedBytes(before, params)
	if err != nil {
		return err
	}
	translated := make([][]uint32, len(params))
	for r, v := range params {
		translated[r] = make([]uint32, len(after.Params))
		for i, p := range before.Params {
			id, ok := after.ParamNamed(p.Name)
			if !ok {
				return fmt.Errorf("param $%s is gone", p.Name)
			}
			translated[r][id] = v[i]
		}
	}
	want, err := replayed(d, before, params)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	got, err := replayed(d, after, translated)
	if err != nil {
		return fmt.Errorf("after: %w", err)
	}
	for r := range want {
		if err := difference(want[r], got[r], masks[r], true); err != nil {
			return fmt.Errorf("replay %d of params %v: %w", r+1, params, err)
		}
	}
	shared, own := NewStream(after, translated, false), NewStream(after, translated, true)
	for k := range schedules {
		s, pick, name := own, Random(rng), fmt.Sprintf("random order %d", k)
		if k%4 == 1 {
			s = shared
		}
		switch k {
		case 0:
			pick, name = Written, "written order"
		case 1, 2:
			pick, name = Adverse, "adverse order"
		}
		order := s.Order(pick)
		got, err := s.Run(d, order, uint64(k))
		if err != nil {
			return fmt.Errorf("after, %s: %w", name, err)
		}
		for r := range got {
			if s == shared {
				if r < len(got)-1 {
					continue // only what the last replay leaves can be compared
				}
				got[r] = union(got)
			}
			if err := difference(want[r], got[r], masks[r], r == len(got)-1); err != nil {
				return fmt.Errorf("replay %d in a stream, params %v, %s (%s): %w", r+1, params, name, s.names(order), err)
			}
		}
	}
	return nil
}

// union merges the memories of all replays.
func union(ms []map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}

// names lists commands with their replay: #3'2 is #3 of the second replay.
func (s *Stream) names(order []int) string {
	per := len(s.spots) / s.replays
	var b bytes.Buffer
	for k, i := range order {
		if k > 0 {
			b.WriteByte(' ')
		}
		id := s.graph.Nodes[i].(ir.Command).Num()
		fmt.Fprintf(&b, "%s'%d", id, i/per+1)
	}
	return b.String()
}

// definedBytes says, by replay and output, which bytes are defined.
func definedBytes(g *ir.Graph, params [][]uint32) (out []map[string][]bool, err error) {
	for _, v := range params {
		mask := map[string][]bool{}
		for _, n := range g.Nodes {
			c, ok := n.(ir.Command)
			if !ok {
				continue
			}
			e := c.Touches()
			if d, ok := n.(*ir.Dispatch); ok {
				if e, err = msl.Describe(g, d); err != nil {
					return nil, err
				}
			}
			if e == nil {
				continue
			}
			for _, w := range e.Writes {
				root, off := g.Root(w.Mem)
				m := &g.Memories[root]
				if m.Kind != ir.Output || !w.Must {
					continue
				}
				if mask[m.Name] == nil {
					mask[m.Name] = make([]bool, m.Size)
				}
				w.Runs(v, func(lo, hi int64) bool {
					for b := lo + off; b < hi+off; b++ {
						mask[m.Name][b] = true
					}
					return true
				})
			}
		}
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Kind == ir.Output && mask[m.Name] == nil {
				mask[m.Name] = make([]bool, m.Size)
			}
		}
		out = append(out, mask)
	}
	return out, nil
}

// difference compares results. mask says which bytes of the outputs count. States can
// only be compared after the last replay, because the stream does not keep them in
// between.
func difference(want, got map[string][]byte, mask map[string][]bool, states bool) error {
	names := make([]string, 0, len(want))
	for n := range want {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		w, m := want[n], mask[n]
		g, ok := got[n]
		if !ok && m == nil && !states {
			continue
		}
		if len(w) != len(g) {
			return fmt.Errorf("%%%s has %d bytes, want %d", n, len(g), len(w))
		}
		for i := range w {
			if w[i] != g[i] && (m == nil || m[i]) {
				at := i / word * word
				return fmt.Errorf("%%%s[%d:%d] is %x, want %x", n, at, at+word, g[at:at+word], w[at:at+word])
			}
		}
	}
	return nil
}

// replayed runs g through package replay, with scratch memory and outputs poisoned
// before each replay, and returns every output and state after each replay. What g
// carries, the host copies between two replays.
func replayed(d backend.Device, g *ir.Graph, params [][]uint32) (out []map[string][]byte, err error) {
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := s.Graph(context.Background(), g.Name)
	if err != nil {
		return nil, err
	}
	carries := slices.ContainsFunc(g.Nodes, isCarry)
	inputs := map[string][]byte{}
	for r, v := range params {
		for i, q := range g.Params {
			x := float64(v[i])
			if q.Type == ir.F32 {
				x = float64(math.Float32frombits(v[i]))
			}
			if err := p.SetParam(q.Name, x); err != nil {
				return nil, err
			}
		}
		for i := range g.Memories {
			if m := &g.Memories[i]; m.Kind == ir.Input && m.Alias == ir.NoMem {
				if r == 0 || !carries {
					inputs[m.Name] = make([]byte, m.Size)
					if err := writeInput(inputs[m.Name], r, m.Name); err != nil {
						return nil, err
					}
				}
				if err := p.SetInput(m.Name, inputs[m.Name]); err != nil {
					return nil, err
				}
			}
		}
		if _, err := p.Run(context.Background()); err != nil {
			return nil, err
		}
		result := map[string][]byte{}
		for i := range g.Memories {
			switch m := &g.Memories[i]; {
			case m.Alias != ir.NoMem:
			case m.Kind == ir.Output:
				result[m.Name], err = p.Output(m.Name)
			case m.Kind == ir.State:
				result[m.Name], err = p.State(m.Name)
			}
			if err != nil {
				return nil, err
			}
		}
		out = append(out, result)
		for _, n := range g.Nodes {
			c, ok := n.(*ir.Carry)
			if !ok {
				continue
			}
			src, dst := &g.Memories[c.Src.Mem], &g.Memories[c.Dst.Mem]
			from, at := c.Src.Off.Eval(v), c.Dst.Off.Eval(v)
			bytes := result[src.Name][from : from+c.Src.Len.Eval(v)]
			if dst.Kind == ir.Input {
				copy(inputs[dst.Name][at:], bytes)
				continue
			}
			state, err := p.State(dst.Name)
			if err != nil {
				return nil, err
			}
			copy(state[at:], bytes)
			if err := p.SetState(dst.Name, state); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
