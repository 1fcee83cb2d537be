package textgen

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// step is a graph that runs tokens, with the names of what generation needs of it.
type step struct {
	*replay.Graph
	names    frontend.Step
	position ir.Param
	logits   int64    // bytes of its output for logits
	rows     int      // of its outputs at most
	number   ir.DType // a logit
}

// maxContext bounds the number of positions, because the sum of a position and a batch
// is a u32.
const maxContext = 1 << 31

// openStep compiles a graph and checks that it has what its interface names.
func openStep(ctx context.Context, s *replay.Instance, names frontend.Step) (*step, error) {
	g, err := s.Graph(ctx, names.Graph)
	if err != nil {
		return nil, err
	}
	out := &step{Graph: g, names: names, rows: 1}
	if err := out.check(); err != nil {
		return nil, err
	}
	return out, out.setDraw(g.SetParam, Options{TopP: 1})
}

func (s *step) String() string { return "graph " + ir.QuoteName(s.names.Graph) }

// param and memory are names as messages have them.
func (*step) param(name string) string  { return "$" + ir.QuoteName(name) }
func (*step) memory(name string) string { return "%" + ir.QuoteName(name) }

// check returns an error if the graph lacks what generation needs: an input of token IDs, outputs for logits and the
// token found, and a position that begins at 0. It also refuses any other param that varies, because generation would
// not know its value.
func (s *step) check() error {
	g := s.IR()
	i, ok := g.ParamNamed(s.names.Position)
	if !ok {
		return fmt.Errorf("%s has no param %s", s, s.param(s.names.Position))
	}
	pos := g.Params[i]
	if pos.Type != ir.U32 || pos.Min != 0 || pos.Max >= maxContext {
		return fmt.Errorf("%s: %s, the position, is a %s in [%s, %s]: want a u32 from 0 to less than %d", s, s.param(pos.Name), pos.Type, pos.Format(pos.Min), pos.Format(pos.Max), maxContext)
	}
	s.position = pos
	set := map[string]bool{pos.Name: true, s.names.Count: true}
	if s.names.Draw != nil {
		for _, p := range s.names.Draw.Params() {
			if i, ok := g.ParamNamed(p.Name); !ok || g.Params[i].Type != p.Type {
				return fmt.Errorf("%s has no %s param %s, by which it would draw its token", s, p.Type, s.param(p.Name))
			}
			set[p.Name] = true
		}
	}
	for _, q := range g.Params {
		if !set[q.Name] && q.Min != q.Max {
			return fmt.Errorf("%s has a param %s in [%v, %v], for which generation has no value", s, s.param(q.Name), q.Min, q.Max)
		}
	}
	for _, want := range []struct {
		memory string
		kind   ir.MemKind
		types  []ir.DType
		size   *int64
	}{
		{s.names.Tokens, ir.Input, []ir.DType{ir.I32, ir.U32}, nil}, {s.names.Logits, ir.Output, []ir.DType{ir.F32, ir.F16, ir.BF16}, &s.logits},
		{s.names.Token, ir.Output, []ir.DType{ir.I32, ir.U32}, nil},
	} {
		size, _ := s.Size(want.memory, want.kind)
		if want.size != nil {
			*want.size = size
		}
		if size < 4 {
			return fmt.Errorf("%s has no %s %s", s, want.kind, s.memory(want.memory))
		}
		i, _ := g.MemoryNamed(want.memory)
		if t := g.Memories[i].DType; t.Valid() && !slices.Contains(want.types, t) {
			return fmt.Errorf("%s: %s is %s, want %s", s, s.memory(want.memory), t, want.types[0])
		}
	}
	memory, _ := g.MemoryNamed(s.names.Logits)
	if s.number = g.Memories[memory].DType; !s.number.Valid() {
		s.number = ir.F32
	}
	if s.logits%s.number.Size() != 0 {
		return fmt.Errorf("%s has %s of %d bytes: want %s", s, s.memory(s.names.Logits), s.logits, s.number)
	}
	return nil
}

// batch returns the max number of tokens that the graph takes.
func (s *step) batch() (int, error) {
	name := s.param(s.names.Count)
	i, ok := s.IR().ParamNamed(s.names.Count)
	if !ok {
		return 0, fmt.Errorf("%s has no param %s", s, name)
	}
	n := s.IR().Params[i]
	if n.Type != ir.U32 || n.Min > 1 || n.Max < 1 {
		return 0, fmt.Errorf("%s: %s, the number of tokens, is a %s in [%s, %s]: want a u32 that may be 1", s, name, n.Type, n.Format(n.Min), n.Format(n.Max))
	}
	if room, _ := s.Size(s.names.Tokens, ir.Input); int64(n.Max) > room/4 {
		return 0, fmt.Errorf("%s takes %s up to %d tokens, its input %s has room for %d", s, name, int64(n.Max), s.memory(s.names.Tokens), room/4)
	}
	return int(n.Max), nil
}

// setDraw sets the params of a graph that draws its token itself.
func (s *step) setDraw(set func(name string, v float64) error, o Options) error {
	d := s.names.Draw
	if d == nil {
		return nil
	}
	if o.OnHost() {
		o.Temp = 0 // what the graph draws does not count: the most likely token costs it least
	}
	for _, p := range []struct {
		name  string
		value float64
	}{
		{d.Temperature, float64(float32(o.Temp))}, {d.TopP, float64(float32(o.TopP))},
		{d.SeedLow, float64(uint32(o.Seed))}, {d.SeedHigh, float64(uint32(o.Seed >> 32))},
	} {
		if err := set(p.name, p.value); err != nil {
			return err
		}
	}
	return nil
}

// states returns the names of the graph's states.
func (s *step) states() (names []string) {
	for _, m := range s.IR().Memories {
		if m.Kind == ir.State && m.Alias == ir.NoMem {
			names = append(names, m.Name)
		}
	}
	return names
}
