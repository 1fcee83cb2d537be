//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"math"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/ir"
)

const (
	ruleBytes = 40
	termBytes = 16
	// advanceThreads is the size of the one threadgroup that evaluates rules.
	advanceThreads = 256
)

// rules are what a first kernel (backend/internal/advance) computes on the GPU before the commands of a replay: it
// writes what depends on params to where kernels read it, and then advances the params. So the host launches replay
// after replay without changing anything.
//
// A last param, beyond those of the graph, counts the replays of a submission: of a memory that is kept of every
// replay (ir.Memory.Every), the copies lie one behind the other.
type rules struct {
	image  []byte // initial contents of the memory of a [launches]: words, tables of additions, rules
	groups []group
	params int // offset in the image of the params
	steps  int // offset in the image of what is added to each param after a replay
	count  int // number of params
}

// group is the rules that write to one memory: an argument memory, or, of the last group, the launches' own.
type group struct {
	memory       ir.MemID
	list         []byte
	terms        []byte
	rules, count int // offsets in the image of the list, and of the numbers of rules and params
	first        int // offset in the image of the terms
}

const ours = ir.NoMem // group.memory of the launches' own memory

func (r *group) add(to int64, e ir.Affine, more []ir.Term, divide, times int64, width int) bool {
	if divide < 1 {
		divide = 1
	}
	if divide > math.MaxUint32 || times > math.MaxUint32 {
		return false
	}
	var b [ruleBytes]byte
	le := binary.LittleEndian
	terms := append(e.Terms()[:len(e.Terms()):len(e.Terms())], more...)
	le.PutUint64(b[:], uint64(e.Const))
	le.PutUint64(b[8:], uint64(to))
	le.PutUint32(b[16:], uint32(len(r.terms)/termBytes))
	le.PutUint32(b[20:], uint32(len(terms)))
	le.PutUint32(b[24:], uint32(divide))
	le.PutUint32(b[28:], uint32(times))
	le.PutUint32(b[32:], uint32(width))
	r.list = append(r.list, b[:]...)
	for _, t := range terms {
		var b [termBytes]byte
		le.PutUint64(b[:], uint64(t.Coeff))
		le.PutUint32(b[8:], uint32(t.Param))
		r.terms = append(r.terms, b[:]...)
	}
	return true
}

// rule makes the rules by which the GPU computes what depends on params in the code of a graph; most is the GPU's
// maximum grid, in blocks. Where the host has to compute it, rule changes nothing and reports false.
func (c *code) rule(g *ir.Graph, most [3]int) bool {
	if len(c.Guards) > 0 {
		return false
	}
	r := &rules{}
	mine := group{memory: ours}
	replay := ir.Term{Param: ir.ParamID(len(g.Params))}
	at := (int64(len(c.Words)) + 255) &^ 255
	moving := make([]int64, len(c.steps)) // by step: offset of its table of additions; 0: none
	grids := make([]grid, len(c.steps))
	bits := make([]uint64, len(c.steps)) // by step: the parameters to which the table adds, by bit
	advances := func(e ir.Affine) bool {
		for _, t := range e.Terms() {
			if g.Params[t.Param].Advance != 0 {
				return true
			}
		}
		return false
	}
	for n := range c.steps {
		s := &c.steps[n]
		x := &grids[n]
		moves := func(p int) int64 {
			if moving[n] == 0 {
				moving[n] = at
				at += int64(8*s.kernel.parameters()+15) &^ 15
			}
			bits[n] |= 1 << p
			return moving[n] + int64(8*p)
		}
		for i := s.first; i < s.dispatch; i++ {
			o := &c.Ops[i]
			v := c.vars(i)
			varies := len(v) > 0 && v[0].Op == i
			switch {
			case o.Kind == plan.SetBytes && varies && s.given(o.Slot):
				if !mine.add(moves(s.kernel.parameter(o.Slot)), scalar(&v[0]), nil, v[0].Divide, 1, 8) {
					return false
				}
			case o.Kind == plan.SetBytes && varies:
				if !mine.add(int64(c.Word[i]), scalar(&v[0]), nil, v[0].Divide, 1, int(o.Len)) {
					return false
				}
			case o.Kind == plan.SetBuffer:
				var more []ir.Term
				if m := &g.Memories[o.Index]; m.Every {
					more = []ir.Term{{Param: replay.Param, Coeff: m.Size}}
				}
				e := ir.Const(0)
				if varies {
					e = v[0].Expr
				} else if more == nil {
					continue
				} else {
					e = ir.Const(o.Off)
				}
				p := s.kernel.parameter(o.Slot)
				if p < 0 {
					continue // the kernel does not have it
				}
				if !mine.add(moves(p), e, more, 0, 1, 8) {
					return false
				}
			}
		}
		d := &c.Grids[c.Ops[s.dispatch].Index]
		for _, v := range c.vars(s.dispatch) {
			if v.Op != s.dispatch {
				break
			}
			k := v.Part - plan.Extent0
			lo, hi, ok := g.Range(v.Expr)
			x.hollow = x.hollow || !ok || lo <= 0
			if !advances(v.Expr) {
				continue
			}
			by := max(1, v.Divide)
			blocks, times := (hi+by-1)/by, int64(1)
			if d.Unit == ir.Threadgroups {
				times = int64(d.Group[k])
			} else {
				blocks = (blocks + int64(d.Group[k]) - 1) / int64(d.Group[k])
			}
			if !ok || blocks > int64(most[k]) || blocks*int64(d.Group[k]) > math.MaxUint32 {
				return false
			}
			x.most[k] = uint32(max(1, blocks))
			if !mine.add(moves(s.kernel.parameters()-6+int(k)), v.Expr, nil, v.Divide, times, 8) {
				return false
			}
		}
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Kind != ir.Argument || m.Alias != ir.NoMem {
			continue
		}
		x := group{memory: ir.MemID(i)}
		for k := range m.Init.Values {
			if v := &m.Init.Values[k]; v.Bytes == nil && !v.Expr.IsConst() {
				e := v.Expr
				if v.Type == ir.F32 {
					e = ir.Linear(0, ir.Term{Param: e.Terms()[0].Param, Coeff: 1})
				}
				x.add(v.Off, e, nil, 1, 1, int(v.Size()))
			}
		}
		if len(x.list) > 0 {
			r.groups = append(r.groups, x)
		}
	}
	if len(mine.list) > 0 || len(r.groups) > 0 { // the launch of the last group advances the params
		r.groups = append(r.groups, mine)
	}
	r.write(g, c.Words, at)
	for n := range c.steps {
		c.steps[n].additions, c.steps[n].moves, c.steps[n].grid = int(moving[n]), bits[n], grids[n]
	}
	c.rules = r
	c.every, c.still = make([]bool, len(g.Memories)), make([]bool, len(g.Params))
	for i := range g.Memories {
		c.every[i] = g.Memories[i].Every
	}
	for i := range g.Params {
		c.still[i] = g.Params[i].Advance == 0
	}
	return true
}

// write lays out the image: words and tables of additions up to end, then params, their steps, and the rules.
func (r *rules) write(g *ir.Graph, words []byte, end int64) {
	r.image = append(append([]byte(nil), words...), make([]byte, end-int64(len(words)))...)
	room := func(n int) int {
		at := (len(r.image) + 255) &^ 255
		r.image = append(r.image, make([]byte, at+n-len(r.image))...)
		return at
	}
	le := binary.LittleEndian
	r.count = len(g.Params) + 1
	r.params = room(4 * (len(g.Params) + 1))
	r.steps = room(4 * (len(g.Params) + 1))
	for i := range g.Params {
		le.PutUint32(r.image[r.steps+4*i:], uint32(g.Params[i].Advance))
	}
	le.PutUint32(r.image[r.steps+4*len(g.Params):], 1)
	for i := range r.groups {
		x := &r.groups[i]
		x.rules = room(len(x.list))
		copy(r.image[x.rules:], x.list)
		x.first = room(len(x.terms))
		copy(r.image[x.first:], x.terms)
		x.count = room(8)
		le.PutUint32(r.image[x.count:], uint32(len(x.list)/ruleBytes))
		le.PutUint32(r.image[x.count+4:], uint32(r.counted(i)))
	}
}

// counted is how many params the launch of a group advances: of the last group all, of others none.
func (r *rules) counted(group int) int {
	if group < len(r.groups)-1 {
		return 0
	}
	return r.count
}

// scalar is the integer expression that has the bits of a var's value; of an f32 param these are the param itself.
func scalar(v *plan.Var) ir.Affine {
	if v.Float {
		return ir.Linear(0, ir.Term{Param: v.Expr.Terms()[0].Param, Coeff: 1})
	}
	return v.Expr
}

// grid is what is known of the grid of a step before its params are known.
type grid struct {
	most   [3]uint32 // maximum of threadgroups in a dimension that the GPU computes; 0: the host sets it
	hollow bool      // the grid may be empty
}
