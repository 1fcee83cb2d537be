package record_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// elements is the number of elements of every tensor in the random sessions.
const elements = 64

// one is a session in one mode, with its own tensors, marks and pool.
type one struct {
	mode string
	*record.Session
	d       *testdevice.Device
	c       *cpu.Device
	finish  []record.FinishOption
	pool    *record.Pool
	tensors map[int]record.Tensor
	marks   []record.Mark
	states  map[string][]byte // of a captured session: the contents after its last replay
}

func (o *one) executes() bool { return o.mode != "capture" }

// machine makes the same calls in sessions of all modes.
type machine struct {
	all   []*one
	next  int
	kinds map[int]string // input, output, state, scratch, pool, dead
	ready map[int]bool   // holds defined bytes
	safe  map[int]bool   // ready at the last commit
	marks [][]int        // tensors of the arena at each mark
	arena []int
	last  *ir.Graph // the last captured graph
}

func newMachine(t *rapid.T) *machine {
	m := &machine{kinds: map[int]string{}, ready: map[int]bool{}, safe: map[int]bool{}}
	for _, mode := range []string{"live", "both", "cpu", "deferred", "optimized", "capture"} {
		o := &one{mode: mode, tensors: map[int]record.Tensor{}, states: map[string][]byte{}}
		o.c = cpu.New(1)
		o.d = testdevice.New(o.c, testdevice.Options{Retain: rapid.Bool().Draw(t, "retain")})
		switch mode {
		case "live":
			o.Session = record.New("t", record.Live(o.d))
		case "cpu":
			o.Session = record.New("t", record.Live(o.c))
		case "both":
			o.Session = record.New("t", record.Live(o.d), record.Capture())
		case "deferred":
			o.Session = record.New("t", record.Deferred(o.d))
		case "optimized":
			o.Session, o.finish = record.New("t", record.Deferred(o.d)), []record.FinishOption{record.Optimize(optimize.New(""))}
		default:
			o.Session = record.New("t")
		}
		o.pool = o.NewPool("pool", ir.Scratch)
		m.all = append(m.all, o)
	}
	for i := range 2 {
		m.declare("input", func(o *one) record.Tensor { return o.Input(fmt.Sprint("in", i), ir.F32, elements) })
		m.declare("state", func(o *one) record.Tensor { return o.State(fmt.Sprint("state", i), ir.F32, elements) })
		m.declare("output", func(o *one) record.Tensor { return o.Output(fmt.Sprint("out", i), ir.F32, elements) })
	}
	m.fillInputs(t)
	return m
}

// declare makes a tensor in every session. States and inputs have defined contents.
func (m *machine) declare(kind string, f func(o *one) record.Tensor) int {
	for _, o := range m.all {
		o.tensors[m.next] = f(o)
	}
	m.kinds[m.next] = kind
	m.ready[m.next] = kind == "input" || kind == "state"
	m.next++
	return m.next - 1
}

func (m *machine) fillInputs(t *rapid.T) {
	seed := rapid.Uint32().Draw(t, "seed")
	for i, kind := range m.kinds {
		if kind != "input" {
			continue
		}
		for _, o := range m.all {
			if !o.executes() {
				continue
			}
			b, err := o.Bytes(o.tensors[i])
			require.NoError(t, err)
			copy(b, pattern(seed, i))
		}
	}
	for _, o := range m.all {
		for i, kind := range m.kinds {
			if kind == "input" {
				o.states[fmt.Sprint("input", i)] = pattern(seed, i)
			}
		}
	}
}

func pattern(seed uint32, i int) []byte {
	out := make([]byte, 4*elements)
	for k := range elements {
		seed = seed*1664525 + 1013904223 + uint32(i) // Numerical Recipes' generator
		binary.LittleEndian.PutUint32(out[4*k:], math.Float32bits(float32(int32(seed))/(1<<31)))
	}
	return out
}

// draw returns a tensor for which want returns true.
func (m *machine) draw(t *rapid.T, name string, want func(i int) bool) (int, bool) {
	var list []int
	for i := range m.next {
		if want(i) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(list).Draw(t, name), true
}

func (m *machine) readable(i int) bool { return m.ready[i] && m.kinds[i] != "dead" }
func (m *machine) writable(i int) bool {
	return m.kinds[i] != "dead" && m.kinds[i] != "input"
}

// each calls f in every session. All must agree whether it is a mistake.
func (m *machine) each(t *rapid.T, f func(o *one)) bool {
	failed := 0
	for _, o := range m.all {
		f(o)
		if o.Err() != nil {
			failed++
		}
	}
	if failed != 0 && failed != len(m.all) {
		for _, o := range m.all {
			t.Logf("%s: %v", o.mode, o.Err())
		}
		t.Fatalf("%d of %d sessions report a mistake", failed, len(m.all))
	}
	return failed == 0
}

func (m *machine) must(t *rapid.T, f func(o *one)) {
	if !m.each(t, f) {
		t.Fatal(m.all[0].Err())
	}
}

func (m *machine) actions() map[string]func(t *rapid.T) {
	operation := func(t *rapid.T) {
		x, _ := m.draw(t, "x", m.readable)
		y, _ := m.draw(t, "y", m.readable)
		into, given := m.draw(t, "into", m.writable)
		given = given && rapid.Bool().Draw(t, "given")
		raw := rapid.Bool().Draw(t, "raw") && given
		op := rapid.IntRange(0, 3).Draw(t, "op")
		call := func(o *one) record.Tensor {
			a, b := o.tensors[x], o.tensors[y]
			var opt []record.Option
			if given {
				opt = append(opt, record.Into(o.tensors[into]))
			}
			if raw {
				name := []string{"vv_Addfloat32", "vv_Multiplyfloat32"}[op%2]
				o.Dispatch(o.Function(name)).Buffer(2, o.tensors[into]).Buffer(0, a).Buffer(1, b).Threads(record.Size(elements), [3]uint32{32, 1, 1})
				return o.tensors[into]
			}
			switch op {
			case 0:
				return o.Add(a, b, opt...)
			case 1:
				return o.Mul(a, b, opt...)
			case 2:
				return o.Sigmoid(a, opt...)
			}
			return o.RMSNorm(a, 1e-5, opt...)
		}
		if given {
			m.must(t, func(o *one) { call(o) })
			m.ready[into] = true
			return
		}
		m.arena = append(m.arena, m.declare("scratch", call))
		m.ready[m.next-1] = true
	}
	return map[string]func(t *rapid.T){
		"operation":  operation,
		"operation2": operation,
		"copy": func(t *rapid.T) {
			x, ok := m.draw(t, "x", m.readable)
			y, ok2 := m.draw(t, "y", func(i int) bool { return m.writable(i) && i != x })
			if ok && ok2 {
				m.must(t, func(o *one) { o.Copy(o.tensors[y], o.tensors[x], "copy") })
				m.ready[y] = true
			}
		},
		"fill": func(t *rapid.T) {
			if y, ok := m.draw(t, "y", m.writable); ok {
				v := byte(rapid.IntRange(0, 63).Draw(t, "value")) // finite numbers
				m.must(t, func(o *one) { o.Fill(o.tensors[y], v, "fill") })
				m.ready[y] = true
			}
		},
		"barrier": func(t *rapid.T) { m.must(t, func(o *one) { o.Barrier() }) },
		"commit": func(t *rapid.T) {
			m.must(t, func(o *one) { o.Commit("part") })
			m.safe = map[int]bool{}
			for i, v := range m.ready {
				m.safe[i] = v
			}
		},
		"wait": func(t *rapid.T) {
			for _, o := range m.all[:3] {
				require.NoError(t, o.Wait())
			}
		},
		"encode": func(t *rapid.T) {
			if m.last == nil {
				return
			}
			recompute := rapid.Bool().Draw(t, "recompute")
			m.must(t, func(o *one) {
				if recompute {
					o.EncodeRecomputed(m.last)
				} else {
					o.Encode(m.last)
				}
			})
		},
		"mark": func(t *rapid.T) {
			m.marks = append(m.marks, append([]int(nil), m.arena...))
			for _, o := range m.all {
				o.marks = append(o.marks, o.ScratchMark())
			}
		},
		"reset": func(t *rapid.T) {
			if len(m.marks) == 0 {
				return
			}
			keep := m.marks[len(m.marks)-1]
			m.marks = m.marks[:len(m.marks)-1]
			for _, i := range m.arena[len(keep):] {
				m.kinds[i] = "dead"
			}
			m.arena = append([]int(nil), keep...)
			m.must(t, func(o *one) {
				o.ScratchReset(o.marks[len(o.marks)-1])
				o.marks = o.marks[:len(o.marks)-1]
			})
		},
		"alloc": func(t *rapid.T) {
			m.declare("pool", func(o *one) record.Tensor { return o.pool.Alloc(ir.F32, elements) })
		},
		"free": func(t *rapid.T) {
			if i, ok := m.draw(t, "i", func(i int) bool { return m.kinds[i] == "pool" }); ok {
				m.must(t, func(o *one) { o.pool.Free(o.tensors[i]) })
				m.kinds[i] = "dead"
			}
		},
		"trim":  func(t *rapid.T) { m.must(t, func(o *one) { o.pool.Trim() }) },
		"group": func(t *rapid.T) { m.must(t, func(o *one) { o.Group("g"); o.EndGroup() }) },
		"discard": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
				return
			}
			m.must(t, func(o *one) { o.Discard() })
			for i := range m.ready {
				m.ready[i] = m.safe[i] || m.kinds[i] == "input" || m.kinds[i] == "state"
			}
		},
		"finish": m.finishAll,
		"misuse": m.misuse,
		"": func(t *rapid.T) {
			first := m.all[0]
			for _, o := range m.all[1:] {
				require.Equal(t, first.Groups(), o.Groups(), o.mode)
				require.Equal(t, first.Conflicts(), o.Conflicts(), o.mode)
				a, b := first.Counters(), o.Counters()
				require.Equal(t, [4]int64{a.Dispatches, a.Barriers, a.AutoBarriers, a.ElidedBarriers}, [4]int64{b.Dispatches, b.Barriers, b.AutoBarriers, b.ElidedBarriers}, o.mode)
				require.Equal(t, first.TrackerSize(), o.TrackerSize(), o.mode)
			}
		},
	}
}

// finishAll ends the recording in every session. All modes must have the same outputs and
// states, and a replay of the captured graph must give them too.
func (m *machine) finishAll(t *rapid.T) {
	var graph *ir.Graph
	for _, o := range m.all {
		r, err := o.Finish(o.finish...)
		require.NoError(t, err, o.mode)
		require.Equal(t, o.mode == "live" || o.mode == "cpu", r.Graph == nil)
		if o.mode == "both" {
			graph = r.Graph
		}
		if o.mode == "capture" {
			require.Equal(t, len(graph.Nodes)-m.closing(graph), len(r.Graph.Nodes)-m.closing(r.Graph))
			m.replay(t, o, r.Graph)
			m.last = r.Graph
			if len(m.last.Nodes) > 40 {
				m.last = nil // it would grow with each recording that encodes it
			}
		}
	}
	first := m.all[0]
	for i := range m.next {
		kind := m.kinds[i]
		if kind != "state" && (kind != "output" || !m.ready[i]) {
			continue
		}
		want, err := first.Bytes(first.tensors[i])
		require.NoError(t, err)
		for _, o := range m.all[1:] {
			got := o.states[fmt.Sprint(kind, i)]
			if o.executes() {
				got, err = o.Bytes(o.tensors[i])
				require.NoError(t, err)
			}
			if got == nil { // the captured session has not replayed anything, so it is still zero
				got = make([]byte, len(want))
			}
			require.True(t, bytes.Equal(want, got), "%s %d: live and %s differ", kind, i, o.mode)
		}
	}
	for i, kind := range m.kinds {
		switch kind {
		case "scratch":
			m.kinds[i] = "dead"
		case "output", "pool":
			m.ready[i] = false // scratch and outputs begin each recording undefined
		}
	}
	m.arena, m.marks, m.safe = nil, nil, map[int]bool{}
	for _, o := range m.all {
		o.marks = nil
	}
	m.fillInputs(t)
}

// closing returns 1 if the graph ends in a commit, which only executed recordings do, else
// 0.
func (m *machine) closing(g *ir.Graph) int {
	if n := len(g.Nodes); n > 0 {
		if _, ok := g.Nodes[n-1].(*ir.Commit); ok {
			return 1
		}
	}
	return 0
}

// replay runs a captured graph with the states that earlier replays left.
func (m *machine) replay(t *rapid.T, o *one, g *ir.Graph) {
	s, err := replay.Open(o.d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{Poison: true})
	require.NoError(t, err)
	p, err := s.Graph(context.Background(), "")
	require.NoError(t, err)
	each := func(f func(i int, kind, name string)) {
		for i := range m.next {
			if kind := m.kinds[i]; kind == "state" || kind == "input" || kind == "output" {
				f(i, kind, g.Memories[o.tensors[i].Mem].Name)
			}
		}
	}
	each(func(i int, kind, name string) {
		if v := o.states[fmt.Sprint(kind, i)]; v != nil && kind == "state" {
			require.NoError(t, p.SetState(name, v))
		} else if v != nil && kind == "input" {
			require.NoError(t, p.SetInput(name, v))
		}
	})
	_, err = p.Run(context.Background())
	require.NoError(t, err)
	each(func(i int, kind, name string) {
		switch kind {
		case "state":
			o.states[fmt.Sprint(kind, i)], err = p.State(name)
		case "output":
			o.states[fmt.Sprint(kind, i)], err = p.Output(name)
		}
		require.NoError(t, err)
	})
	require.NoError(t, s.Close())
}

// misuse makes one of several mistakes. Every session must report it, Finish must return
// it, and no command buffer may stay open. What was committed before was executed in the
// live sessions only, so the states differ afterwards and the test ends.
func (m *machine) misuse(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
		return
	}
	dead, hasDead := m.draw(t, "dead", func(i int) bool { return m.kinds[i] == "dead" })
	in, _ := m.draw(t, "in", func(i int) bool { return m.kinds[i] == "input" })
	mistakes := []func(o *one){
		func(o *one) { o.Fill(o.tensors[in], 0, "") },
		func(o *one) { o.Add(o.tensors[in], o.Input("short", ir.F32, 3)) },
		func(o *one) { o.Dispatch(o.Function("no_such_kernel")).Threads(record.Size(1), [3]uint32{1, 1, 1}) },
		func(o *one) {
			o.Dispatch(o.Function("vv_Addfloat32")).Buffer(0, o.tensors[in]).Buffer(0, o.tensors[in])
		},
		func(o *one) { o.Dispatch(o.Function("vv_Addfloat32")).Threads(record.Size(1), [3]uint32{1, 1, 1}) },
		func(o *one) {
			o.Dispatch(o.Function("vv_Addfloat32")).Buffer(0, o.tensors[in])
			o.Barrier()
		},
		func(o *one) {
			o.Dispatch(o.Function("vv_Addfloat32")).Buffer(0, o.tensors[in])
			o.Commit("open")
		},
		func(o *one) { o.Fill(o.tensors[in].Slice(ir.Const(4), ir.Const(4*elements)), 0, "") },
		func(o *one) { o.pool.Free(o.tensors[in]) },
		func(o *one) { o.ScratchReset(1 << 40) },
		func(o *one) { o.Param("p", 1, 2); o.Param("p", 1, 3) },
	}
	if hasDead {
		mistakes = append(mistakes, func(o *one) { o.Copy(o.tensors[dead], o.tensors[in], "") })
	}
	k := rapid.IntRange(0, len(mistakes)-1).Draw(t, "mistake")
	if m.each(t, mistakes[k]) {
		t.Fatalf("mistake %d is not reported", k)
	}
	text := m.all[0].Err().Error()
	for _, o := range m.all {
		require.EqualError(t, o.Err(), text, o.mode)
		_, err := o.Finish(o.finish...)
		require.EqualError(t, err, text, o.mode)
		require.NoError(t, o.Err(), "the next recording begins without it")
		require.Zero(t, o.d.Uncommitted())
	}
	m.close(t)
	*m = *newMachine(t)
}

func (m *machine) close(t *rapid.T) {
	for _, o := range m.all {
		require.NoError(t, o.Close())
		require.Empty(t, o.d.Leaks(), o.mode)
		require.NoError(t, o.c.Close())
	}
}

// Random calls give the same bytes and counters live, captured, deferred and optimized.
// Every mistake is an error, and nothing leaks.
func TestRandomCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(m.actions())
		m.finishAll(t)
		m.close(t)
	})
}
