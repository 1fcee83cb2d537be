//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir"
)

// codeOf makes the code of a graph, with rules or without, whose kernels have an argument at every slot, and
// launches of it whose memory no GPU reads.
func codeOf(g *ir.Graph, rules bool) (*code, *launches) {
	p, err := plan.Lower(context.Background(), g, planning)
	if err != nil {
		return nil, nil // a fill of more than 2^32 elements, which Lower refuses
	}
	c := &code{Stored: plan.Store(p, noLimit, false), nodes: g.Nodes, describe: func(int32) string { return "" }}
	// What all dispatches of a pipeline set as bytes is a constant argument of its kernel.
	bytes, memory := make([][slots]int64, len(p.Pipelines)), make([][slots]bool, len(p.Pipelines))
	at := 0
	for i := range p.Ops {
		switch o := &p.Ops[i]; o.Kind {
		case plan.SetPipeline:
			at = int(o.Index)
		case plan.SetBuffer:
			memory[at][o.Slot] = true
		case plan.SetBytes:
			if n := bytes[at][o.Slot]; n == 0 || o.Len < n {
				bytes[at][o.Slot] = o.Len
			}
		}
	}
	for n := range p.Pipelines {
		k := &air.Kernel{}
		x := &kernel{kernel: k}
		for i := range slots {
			a := air.Arg{Space: air.Device, Index: i}
			if size := bytes[n][i]; size > 0 && !(memory[n][i] && i%2 == 0) {
				a.Space, a.Size = air.Constant, size
			}
			if a.ByValue() {
				x.values |= 1 << i
			}
			k.Args = append(k.Args, a)
		}
		c.kernels = append(c.kernels, x)
	}
	d := &Device{limits: limits{grid: [3]int{math.MaxInt32, math.MaxInt32, math.MaxInt32}}}
	of := g
	if !rules {
		of = nil
	}
	c.arrange(of, d.limits.grid)
	return c, &launches{code: c, device: d, list: make([]driver.Launch, len(c.steps)), entries: make([]*entry, len(c.steps)), block: make([]byte, c.bytes), memory: &buffer{at: 1 << 50}}
}

// follow evaluates the rules in an image, as the GPU does (advance.metal).
func follow(r *rules, image []byte) {
	le := binary.LittleEndian
	for _, x := range r.groups {
		if x.memory != ours {
			continue
		}
		for n := range le.Uint32(image[x.count:]) {
			b := image[x.rules+int(n)*ruleBytes:]
			v := int64(le.Uint64(b))
			for k := range le.Uint32(b[20:]) {
				t := image[x.first+int(le.Uint32(b[16:])+k)*termBytes:]
				v += int64(le.Uint64(t)) * int64(le.Uint32(image[r.params+4*int(le.Uint32(t[8:])):]))
			}
			divide, times := uint64(le.Uint32(b[24:])), uint64(le.Uint32(b[28:]))
			u := (uint64(v) + divide - 1) / divide * times
			var word [8]byte
			le.PutUint64(word[:], u)
			copy(image[le.Uint64(b[8:]):], word[:le.Uint32(b[32:])])
		}
		for i := range le.Uint32(image[x.count+4:]) {
			le.PutUint32(image[r.params+4*int(i):], le.Uint32(image[r.params+4*int(i):])+le.Uint32(image[r.steps+4*int(i):]))
		}
	}
}

// TestRules: in several replays of random graphs kernels get the same by rules, which the GPU evaluates, as when the
// host computes it: addresses, grids, and the bytes of constants.
func TestRules(t *testing.T) {
	ruled, moving, addresses := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range irtest.Module(t).Graphs {
			c, l := codeOf(g, true)
			if c == nil || c.rules == nil {
				continue // the host does it, as where a grid is taken from memory
			}
			hosted, h := codeOf(g, false)
			params := make([]uint32, len(g.Params)+1)
			places := make([]driver.Address, len(g.Memories))
			for i := range places {
				places[i] = driver.Address(i+1) << 32
			}
			for i := range g.Params {
				params[i] = uint32(g.Params[i].Min)
				if g.Params[i].Type == ir.F32 {
					params[i] = math.Float32bits(float32(g.Params[i].Min))
				}
			}
			image := slices.Clone(c.rules.image)
			for i, v := range params {
				binary.LittleEndian.PutUint32(image[c.rules.params+4*i:], v)
			}
			fits := true // its grids are within the GPU's limits
			for n := range c.steps {
				fits = fits && l.make(n, places, params) == nil
			}
			if !fits {
				continue
			}
			ruled++
			for replay := range 3 {
				if !within32(g, params) {
					break
				}
				follow(c.rules, image)
				for n := range c.steps {
					require.NoError(t, h.make(n, places, params))
					s := &c.steps[n]
					if s.additions > 0 {
						moving++
					}
					known, aligned := map[int]uint64{}, map[int]bool{}
					for _, p := range c.known(s, nil) {
						if aligned[p.number] = p.aligned; !p.aligned {
							known[p.number] = p.value
						}
					}
					for k := range s.kernel.parameters() {
						got := binary.LittleEndian.Uint64(l.block[s.params+8*k:])
						if v, ok := known[k]; ok {
							require.Equal(t, v, got, "replay %d, step %d, parameter %d is known", replay, n, k)
						}
						if s.moves>>k&1 != 0 {
							got += binary.LittleEndian.Uint64(image[s.additions+8*k:])
						}
						want := binary.LittleEndian.Uint64(h.block[hosted.steps[n].params+8*k:])
						require.Equal(t, want, got, "replay %d, step %d, parameter %d", replay, n, k)
						if aligned[k] {
							require.Zero(t, want%wideBytes, "replay %d, step %d, parameter %d is an address 0x%x", replay, n, k, want)
							addresses++
						}
					}
					for i := range 3 {
						require.LessOrEqual(t, h.list[n].Grid[i], l.list[n].Grid[i], "replay %d, step %d has more threadgroups than are launched", replay, n)
					}
				}
				for n := range c.steps {
					s := &c.steps[n]
					for i := s.first; i < s.dispatch; i++ {
						o := &c.Ops[i]
						v := c.vars(i)
						if varies := len(v) > 0 && v[0].Op == i; o.Kind == plan.SetBytes && !(varies && s.given(o.Slot)) {
							want := slices.Clone(c.Words[c.Word[i]:][:o.Len])
							if varies {
								var word [8]byte
								binary.LittleEndian.PutUint64(word[:], v[0].Value(params))
								copy(want, word[:o.Len])
							}
							require.Equal(t, want, image[c.Word[i]:][:o.Len])
						}
					}
				}
				for i := range g.Params {
					params[i] += uint32(g.Params[i].Advance)
				}
				params[len(g.Params)]++
				for i := range g.Memories {
					if g.Memories[i].Every {
						places[i] += driver.Address(g.Memories[i].Size)
					}
				}
			}
		}
	})
	require.Positive(t, ruled)
	require.Positive(t, moving)
	require.Positive(t, addresses, "that are known to be aligned")
}

// within32 reports whether params keep their bounds and the graph's constraints.
func within32(g *ir.Graph, params []uint32) bool {
	for i := range g.Params {
		if p := &g.Params[i]; p.Type == ir.U32 && (float64(params[i]) < p.Min || float64(params[i]) > p.Max) {
			return false
		}
	}
	for _, c := range g.Constraints {
		if c.LHS.Eval(params) > c.Max {
			return false
		}
	}
	return true
}

// TestArcs: the edges of a CUDA graph order all that the graph's own edges order, and those of a chain all steps.
func TestArcs(t *testing.T) {
	edged := 0
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range irtest.Module(t).Graphs {
			c, _ := codeOf(g, true)
			if c == nil {
				continue
			}
			chain := g.Ordering != ir.ByEdges
			c.link(chain)
			n := len(c.steps) + int(c.joins)
			before := make([][]bool, n) // by node: which ones it waits for
			out := make([][]int32, n)
			degree := make([]int, n)
			for _, a := range c.arcs {
				out[a.from] = append(out[a.from], a.to)
				degree[a.to]++
			}
			var ready []int32
			for i := range n {
				before[i] = make([]bool, n)
				if degree[i] == 0 {
					ready = append(ready, int32(i))
				}
			}
			done := 0
			for ; len(ready) > 0; done++ {
				x := ready[0]
				ready = ready[1:]
				for _, to := range out[x] {
					before[to][x] = true
					for i, b := range before[x] {
						before[to][i] = before[to][i] || b
					}
					if degree[to]--; degree[to] == 0 {
						ready = append(ready, to)
					}
				}
			}
			require.Equal(t, n, done, "the edges have a cycle")
			if chain {
				for i := 1; i < n; i++ {
					require.True(t, before[i][i-1])
				}
				continue
			}
			edged++
			// If a command waits for another, directly or by way of joins, all its steps wait for all of the
			// other's.
			waits := g.Waits()
			steps := map[int32][]int{}
			for i := range c.steps {
				steps[c.steps[i].node] = append(steps[c.steps[i].node], i)
			}
			ancestors := make([]map[int32]bool, len(g.Nodes))
			for i := range g.Nodes {
				ancestors[i] = map[int32]bool{}
				if _, ok := g.Nodes[i].(ir.Command); !ok {
					continue
				}
				same, _ := waits.Of(i)
				for _, from := range same {
					ancestors[i][from] = true
					for a := range ancestors[from] {
						ancestors[i][a] = true
					}
				}
				for a := range ancestors[i] {
					for _, x := range steps[a] {
						for _, y := range steps[int32(i)] {
							require.True(t, before[y][x], "command %d does not wait for %d", i, a)
						}
					}
				}
			}
		}
	})
	require.Positive(t, edged)
}
