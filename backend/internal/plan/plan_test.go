package plan

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

// sent is what reaches a GPU: a dispatch with everything that the encoder has bound, or a barrier (nil slots).
type sent struct {
	what    string
	slots   map[int]string
	memory  map[int]int64
	grid    [3]uint64
	group   [3]uint32
	counts  string
	most    string // of a guard
	node    int
	barrier bool
	edge    bool // a barrier that is an edge
	timed   bool
	time    int
}

// forget is an operation after which nothing is bound: a command of an indirect command buffer has what
// it sets itself.
const forget Kind = 100

// executed returns what an encoder does with stored commands, as operations of a plan.
func executed(t require.TestingT, s *Stored) *Plan {
	p := *s.Plan
	p.Ops, p.Vars, p.Data, p.Buffers = nil, nil, slices.Clone(s.Data), nil
	words := int64(len(p.Data))
	p.Data = append(p.Data, s.Words...)
	vars := map[int32][]Var{}
	for _, v := range s.Vars {
		vars[v.Op] = append(vars[v.Op], v)
	}
	shared := map[int32]int32{} // by word: an operation whose bytes lie there
	for i, at := range s.Word {
		if other, ok := shared[at]; ok && at >= 0 {
			require.True(t, len(vars[int32(i)]) == 0 && len(vars[other]) == 0, "an operation writes what another reads")
		}
		shared[at] = int32(i)
	}
	add := func(i int32) {
		o := s.Ops[i]
		require.Equal(t, o.Kind == SetBytes, s.Word[i] >= 0)
		if s.Word[i] >= 0 {
			require.Zero(t, s.Word[i]%WordAlign)
			o.Off = words + int64(s.Word[i])
		}
		for _, v := range vars[i] {
			v.Op = int32(len(p.Ops))
			p.Vars = append(p.Vars, v)
		}
		p.Ops = append(p.Ops, o)
	}
	for i, r := range s.Ranges {
		b := s.Plan.Buffers[i]
		b.First = int32(len(p.Ops))
		wall := int32(-1) // the last barrier inside of commands: it orders them alone
		for _, step := range s.Steps[r.First:r.End] {
			if step.Kind == Emit {
				if wall >= 0 && step.First == wall { // it is emitted too
					require.Equal(t, wall+1, step.End)
					wall = -1
					continue
				}
				for i := step.First; i < step.End; i++ {
					require.Equal(t, step.Next, s.Ops[i].Next)
					if s.Ops[i].Kind == Barrier {
						wall = -1
					}
					require.True(t, wall < 0 || s.Ops[i].Kind != Dispatch && s.Ops[i].Kind != DispatchIndirect, "a barrier inside of commands is to order what is none")
					add(i)
				}
				continue
			}
			require.Negative(t, wall, "a barrier inside of commands is to order other ones")
			for _, c := range s.Commands[step.First:step.End] {
				p.Ops = append(p.Ops, Op{Kind: forget, Next: step.Next})
				if c.Barrier {
					for i := c.First; i < c.Dispatch; i++ {
						if s.Ops[i].Kind == Barrier {
							wall = i
						}
					}
					require.False(t, step.Next, "a barrier that is not always executed")
					require.Empty(t, vars[c.Dispatch], "a barrier of a command that may be empty")
					p.Ops = append(p.Ops, Op{Kind: Barrier})
				}
				for i := c.First; i <= c.Dispatch; i++ {
					if s.Ops[i].Kind != Barrier {
						require.Equal(t, step.Next, s.Ops[i].Next)
						add(i)
					}
				}
			}
			p.Ops = append(p.Ops, Op{Kind: forget})
		}
		b.End = int32(len(p.Ops))
		p.Buffers = append(p.Buffers, b)
	}
	return &p
}

// play does what an encoder does with a plan, and returns what it sends, by command buffer.
func play(t require.TestingT, p *Plan, params []uint32, next, serial bool) (out [][]sent) {
	vars := map[int32][]Var{}
	for _, v := range p.Vars {
		vars[v.Op] = append(vars[v.Op], v)
	}
	at := int32(0)
	for _, b := range p.Buffers {
		require.Equal(t, at, b.First, "operations outside of command buffers")
		at = b.End
		var list []sent
		pipeline := ""
		slots, memory := map[int]string{}, map[int]int64{}
		depth := 0
		for i := b.First; i < b.End; i++ {
			o := p.Ops[i]
			if o.Next && !next {
				continue
			}
			off := o.Off
			data := []byte(nil)
			if o.Kind == SetBytes {
				data = slices.Clone(p.Data[o.Off : o.Off+o.Len])
			}
			var grid Grid
			if o.Kind == Dispatch || o.Kind == DispatchIndirect {
				grid = p.Grids[o.Index]
			}
			for _, v := range vars[i] {
				x := v.Value(params)
				switch v.Part {
				case Offset:
					off = int64(x)
				case Bytes:
					word := binary.LittleEndian.AppendUint64(nil, x)
					copy(data, word[:len(data)])
				default:
					grid.Size[v.Part-Extent0] = x
				}
			}
			switch o.Kind {
			case SetPipeline:
				k := p.Pipelines[o.Index]
				pipeline = fmt.Sprint(k.Source, k.Kernel, k.Width)
			case SetBuffer:
				slots[int(o.Slot)] = fmt.Sprint("at ", o.Index, "+", off)
			case SetOffset:
				require.Contains(t, slots[int(o.Slot)], fmt.Sprint("at ", o.Index, "+"), "an offset of another buffer")
				slots[int(o.Slot)] = fmt.Sprint("at ", o.Index, "+", off)
			case SetBytes:
				slots[int(o.Slot)] = fmt.Sprintf("%x", data)
			case SetThreadgroupMemory:
				memory[int(o.Slot)] = o.Len
			case Barrier:
				list = append(list, sent{barrier: true})
			case Edge: // it orders as a barrier does
				list = append(list, sent{barrier: true, edge: true})
				fallthrough
			case forget:
				pipeline = ""
				slots, memory = map[int]string{}, map[int]int64{}
			case Timestamp:
				list = append(list, sent{time: int(o.Index), timed: true})
			case Push:
				depth++
			case Pop:
				depth--
				require.GreaterOrEqual(t, depth, 0)
			case Dispatch, DispatchIndirect:
				s := sent{what: pipeline, slots: map[int]string{}, memory: map[int]int64{}, grid: grid.Size, group: grid.Group, node: int(grid.Node)}
				for k, v := range slots {
					s.slots[k] = v
				}
				for k, v := range memory {
					s.memory[k] = v
				}
				if o.Kind == DispatchIndirect {
					// Its counts are those of a guard, in this command buffer and behind a barrier.
					n := len(list) - 1
					if !serial {
						require.True(t, list[n].barrier)
						n--
					}
					guard := list[n]
					list = list[:n]
					require.Equal(t, fmt.Sprint(Guard, 0, 0), guard.what)
					require.Equal(t, fmt.Sprint("at ", Guarded, "+", off), guard.slots[1])
					require.EqualValues(t, grid.Node, p.Guards[off/GuardBytes])
					require.Equal(t, [3]uint64{1, 1, 1}, guard.grid)
					s.most = guard.slots[2]
					s.grid, s.counts = [3]uint64{}, guard.slots[0]
				} else if slices.Contains(s.grid[:], 0) {
					continue
				}
				list = append(list, s)
			}
		}
		require.Zero(t, depth, "debug groups of a command buffer")
		out = append(out, list)
	}
	require.EqualValues(t, len(p.Ops), at)
	return out
}

// wanted returns what a node of the graph should send; ok is false if that is nothing.
func wanted(g *ir.Graph, i int, params []uint32, next bool) (w sent, ok bool) {
	view := func(v *ir.View) string {
		root, base := g.Root(v.Mem)
		return fmt.Sprint("at ", int(root), "+", base+v.Off.Eval(params))
	}
	w = sent{slots: map[int]string{}, memory: map[int]int64{}, node: i}
	move := func(source Source, dst, src *ir.View, value byte) {
		n := dst.Len.Eval(params)
		if ok = n > 0; !ok {
			return
		}
		width := 1
		for _, x := range []int64{16, 4} {
			aligned := func(v *ir.View) bool {
				root, base := g.Root(v.Mem)
				m := &g.Memories[root]
				// Its place is aligned as it asks for, at least to its elements' size, and to 16 where it asks for
				// nothing; the copies of later replays lie behind it at multiples of its size.
				all := m.Align == 0 || m.Align%x == 0 || m.DType.Size() >= x && m.DType.Size()%x == 0
				all = all && (!m.Every || m.Size%x == 0)
				all = all && (v.Off.Const+base)%x == 0 && v.Len.Const%x == 0
				for _, t := range append(slices.Clone(v.Off.Terms()), v.Len.Terms()...) {
					all = all && t.Coeff%x == 0
				}
				return all
			}
			if width == 1 && aligned(dst) && (src == nil || aligned(src)) {
				width = int(x)
			}
		}
		w.what = fmt.Sprint(source, 0, width)
		w.slots[0] = view(dst)
		w.slots[1] = strings.Repeat(fmt.Sprintf("%02x", value), width)
		if src != nil {
			w.slots[0], w.slots[1] = view(src), view(dst)
		}
		w.slots[2] = fmt.Sprintf("%x", binary.LittleEndian.AppendUint32(nil, uint32(n/int64(width))))
		w.grid, w.group = [3]uint64{uint64(n) / uint64(width), 1, 1}, [3]uint32{256, 1, 1}
	}
	switch n := g.Nodes[i].(type) {
	case *ir.Copy:
		move(Copy, &n.Dst, &n.Src, 0)
	case *ir.Carry:
		if next {
			move(Copy, &n.Dst, &n.Src, 0)
		}
	case *ir.Fill:
		move(Fill, &n.Dst, nil, n.Value)
	case *ir.Dispatch:
		ok = true
		w.what = fmt.Sprint(FromGraph, n.Kernel, 0)
		for k := range n.Bindings {
			switch b := &n.Bindings[k]; b.Kind {
			case ir.BindView:
				w.slots[int(b.Slot)] = view(&b.View)
			case ir.BindBytes:
				w.slots[int(b.Slot)] = fmt.Sprintf("%x", b.Bytes)
			case ir.BindScalar:
				x := uint64(b.Expr.Eval(params))
				if b.Type == ir.F32 {
					x = uint64(params[b.Expr.Terms()[0].Param])
				}
				w.slots[int(b.Slot)] = fmt.Sprintf("%x", binary.LittleEndian.AppendUint64(nil, x)[:b.Type.Size()])
			}
		}
		for _, m := range n.ThreadgroupMemory {
			w.memory[int(m.Slot)] = int64(m.Bytes)
		}
		w.group = n.Threadgroup
		for k, e := range n.Grid {
			w.grid[k] = uint64(e.Eval(params))
		}
		if slices.Contains(w.grid[:], 0) {
			return w, false
		}
		if c := n.Counts(); c != nil {
			var most []byte
			for _, n := range w.grid {
				most = binary.LittleEndian.AppendUint32(most, uint32(n))
			}
			w.grid, w.counts, w.most = [3]uint64{}, view(c), fmt.Sprintf("%x", most)
		}
	}
	return w, ok
}

// compare checks what the plan of a graph sends against the graph, also when it is stored.
func compare(t require.TestingT, g *ir.Graph, o Options, params []uint32, next bool) {
	p, err := Lower(context.Background(), g, o)
	if err != nil && strings.Contains(err.Error(), "more than 2^32 elements") {
		large := func(m ir.Memory) bool { return m.Size > math.MaxUint32 }
		require.True(t, slices.ContainsFunc(g.Memories, large), "%v", err)
		return
	}
	require.NoError(t, err)
	follows(t, g, p, o, params, next)
	if !o.Whole || o.Times != NoTimes {
		return
	}
	for i, o := range p.Ops {
		require.NotEqual(t, SetOffset, o.Kind, "operation %d relies on what was bound before", i)
	}
	for _, inside := range []bool{false, true} {
		for _, most := range []int{2, 1 << 14} {
			s := Store(p, most, inside)
			for _, x := range s.Steps {
				if x.Kind == Execute {
					require.Equal(t, int(x.First)/most, int(x.End-1)/most, "commands of two buffers in one step")
				}
			}
			for i, c := range s.Commands {
				require.Less(t, c.First, c.Dispatch, "command %d sets nothing", i)
			}
			follows(t, g, executed(t, s), o, params, next)
		}
	}
}

// follows checks what a plan sends against its graph.
func follows(t require.TestingT, g *ir.Graph, p *Plan, o Options, params []uint32, next bool) {
	buffers := play(t, p, params, next, o.Serial)
	var list []sent
	buffer, epoch := map[int]int{}, map[int]int{} // by node: where it was sent
	var times []int
	for i, b := range buffers {
		n := 0
		for _, s := range b {
			if s.barrier {
				n++
				require.True(t, s.edge || !o.Serial, "a serial encoder needs no barrier")
				continue
			}
			if s.timed {
				times = append(times, s.time)
				continue
			}
			list, buffer[s.node], epoch[s.node] = append(list, s), i, n
		}
	}
	for _, b := range p.Buffers {
		some, open := false, false
		for _, o := range p.Ops[b.First:b.End] {
			switch o.Kind {
			case Barrier:
				require.True(t, some, "a barrier that orders nothing")
				some, open = false, true
			case Dispatch, DispatchIndirect:
				some, open = true, false
			case Edge:
				some = false
			}
		}
		require.False(t, open, "a barrier that orders nothing")
		n := 0
		for _, o := range p.Ops[b.First:b.End] {
			if o.Kind == Dispatch || o.Kind == DispatchIndirect {
				n++
			}
		}
		require.True(t, o.Most == 0 || n <= 2*o.Most+1, "%d dispatches in a command buffer", n)
		nodes := map[int32]bool{}
		for _, o := range p.Ops[b.First:b.End] {
			if o.Kind == Dispatch || o.Kind == DispatchIndirect {
				nodes[p.Grids[o.Index].Node] = true
			}
		}
		require.True(t, o.Time == nil || len(nodes) <= max(1, int(2*o.Longest)), "%d commands of half a second in %v", len(nodes), o.Longest)
	}
	at := 0
	for i := range g.Nodes {
		w, ok := wanted(g, i, params, next)
		if !ok {
			continue
		}
		require.Less(t, at, len(list), "%s is not sent", g.DescribeNode(i))
		got := list[at]
		at++
		require.Equal(t, i, got.node)
		require.Equal(t, w.what, got.what, "%s", g.DescribeNode(i))
		for slot, value := range w.slots {
			require.Equal(t, value, got.slots[slot], "%s: slot %d", g.DescribeNode(i), slot)
		}
		for slot, n := range w.memory {
			require.Equal(t, n, got.memory[slot])
		}
		require.Equal(t, [2]any{w.grid, w.group}, [2]any{got.grid, got.group}, "%s", g.DescribeNode(i))
		require.Equal(t, w.counts, got.counts)
		require.Equal(t, w.most, got.most)
	}
	require.Equal(t, at, len(list), "something else is sent")
	if o.Times == ByDispatch {
		for i, n := range times {
			require.Equal(t, i, n)
		}
		require.Len(t, times, 2*len(p.Timed))
	}
	if o.Serial {
		return
	}
	// What the graph orders within a command buffer, barriers order.
	apart := func(from, to int) {
		a, sentA := buffer[from]
		b, sentB := buffer[to]
		if sentA && sentB && a == b {
			require.Less(t, epoch[from], epoch[to], "nothing orders %s before %s", g.DescribeNode(from), g.DescribeNode(to))
		}
	}
	switch g.Ordering {
	case ir.Serial:
		for i := range g.Nodes {
			for k := range i {
				apart(k, i)
			}
		}
	case ir.ByEdges:
		waits := g.Waits()
		reach := make([]map[int]bool, len(g.Nodes))
		for i := range g.Nodes {
			reach[i] = map[int]bool{}
			same, _ := waits.Of(i)
			for _, from := range same {
				reach[i][int(from)] = true
				for k := range reach[from] {
					reach[i][k] = true
				}
			}
			for k := range reach[i] {
				apart(k, i)
			}
		}
	default:
		for i, n := range g.Nodes {
			if _, ok := n.(*ir.Barrier); !ok {
				continue
			}
			for a := i - 1; a >= 0 && !isCommit(g.Nodes[a]); a-- {
				for b := i + 1; b < len(g.Nodes) && !isCommit(g.Nodes[b]); b++ {
					apart(a, b)
				}
			}
		}
	}
}

func isCommit(n ir.Node) bool { _, ok := n.(*ir.Commit); return ok }

// TestRandomGraphs: the plan of any graph sends what the graph says.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, g := range irtest.Module(t).Graphs {
			o := Options{Serial: rapid.Bool().Draw(t, "serial"), Groups: rapid.Bool().Draw(t, "groups")}
			o.Most = rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "most")
			o.Parts = rapid.SampledFrom([]int{0, 0, 2, 3, 8}).Draw(t, "parts")
			o.Whole = !o.Serial && rapid.Bool().Draw(t, "whole")
			o.Times = rapid.SampledFrom([]Times{NoTimes, NoTimes, ByEncoder, ByDispatch}).Draw(t, "times")
			if rapid.Bool().Draw(t, "times are known") {
				o.Time, o.Longest = func(n ir.Node) float64 { return 0.5 }, float64(rapid.IntRange(0, 3).Draw(t, "longest"))
			}
			next := rapid.Bool().Draw(t, "next")
			for _, params := range g.Samples(4) {
				compare(t, g, o, params, next)
			}
		}
	})
}

// TestStoredCarries: a barrier between carries orders what stands around them, also in the last replay.
func TestStoredCarries(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "t", []byte(`mlxt 1

graph g {
  memory %x input 64 f32[16]
  memory %s input 64 f32[16]
  memory %y output 64 f32[16]
  memory %z output 64 f32[16]
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 @add (a = %x[0:4], b = %x[0:4], c = %y[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
  barrier
  #1 carry %y[0:4] -> %s[0:4]
  barrier
  #2 carry %y[4:8] -> %s[4:8]
  barrier
  #3 @add (a = %x[0:4], b = %x[0:4], c = %z[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
}
`))
	require.NoError(t, err)
	for _, next := range []bool{false, true} {
		compare(t, m.Graphs[0], Options{Whole: true}, nil, next)
	}
}

// TestRecordedGraphs does the same for the graphs that engines recorded.
func TestRecordedGraphs(t *testing.T) {
	for _, g := range recorded.Graphs(t) {
		for _, o := range []Options{{}, {Serial: true}, {Groups: true}, {Whole: true}, {Parts: 3}, {Times: ByEncoder}, {Times: ByDispatch}} {
			compare(t, g, o, g.Greatest(), true)
		}
	}
}

// TestWhatIsKept: what an encoder has bound is not set again.
func TestWhatIsKept(t *testing.T) {
	m, err := mlxt.Parse(context.Background(), "t", []byte(`mlxt 1

graph g {
  param $pos u32 in [0, 15]
  memory %x input 64 f32[16]
  memory %y output 64 f32[16]
  memory %z output 64 f32[16]
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

  #0 @add (a = %x[0:4], b = %x[0:4], c = %y[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
  #1 @add (a = %x[0:4], b = %x[4:8], c = %z[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
  barrier
  #2 @add (a = %x[0:4], b = %x[4 * $pos:4 * $pos + 4], c = %z[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
  barrier
  #3 @add (a = %x[0:4], b = %x[4 * $pos:4 * $pos + 4], c = %z[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
  commit event
  #4 @add (a = %x[0:4], b = %x[4:8], c = %z[0:4]) grid threads [1, 1, 1] of [1, 1, 1]
}
`))
	require.NoError(t, err)
	p, err := Lower(context.Background(), m.Graphs[0], Options{})
	require.NoError(t, err)
	var out []string
	for _, b := range p.Buffers {
		line := ""
		for _, o := range p.Ops[b.First:b.End] {
			line += o.Kind.String()
			switch o.Kind {
			case SetBuffer:
				line += fmt.Sprintf(" %d=%s+%d", o.Slot, m.Graphs[0].Memories[o.Index].Name, o.Off)
			case SetOffset:
				line += fmt.Sprintf(" %d+%d", o.Slot, o.Off)
			}
			line += "; "
		}
		out = append(out, line)
	}
	assert.Equal(t, []string{
		"pipeline; buffer 0=x+0; buffer 1=x+0; buffer 2=y+0; dispatch; offset 1+4; buffer 2=z+0; dispatch; offset 1+0; barrier; dispatch; barrier; dispatch; ",
		"pipeline; buffer 0=x+0; buffer 1=x+4; buffer 2=z+0; dispatch; ",
	}, out)
	assert.Equal(t, Stats{Dispatches: 5, Barriers: 2, Set: 11, Kept: 9, Variable: 1}, p.Stats)
	assert.Equal(t, []ir.CommitOrder{ir.OrderNone, ir.OrderEvent}, []ir.CommitOrder{p.Buffers[0].Order, p.Buffers[1].Order})
}
