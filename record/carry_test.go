package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/record"
)

func TestCarry(t *testing.T) {
	s := record.New("step")
	pos := s.Param("pos", 0, 7)
	x := s.Input("x", ir.F32, 4)
	past := s.State("past", ir.F32, 8, 4)
	y := s.Output("y", ir.F32, 4)
	s.Copy(past.Row(pos), x, "past")
	s.Add(x, x, record.Into(y))
	s.Carry(x, y, "next")
	s.Advance("pos", 1)
	s.Every(y)
	r, err := s.Finish()
	require.NoError(t, err)
	text := mlxt.Format(&ir.Module{Graphs: []*ir.Graph{r.Graph}})
	require.Contains(t, text, "param $pos u32 in [0, 7] += 1\n")
	require.Contains(t, text, `memory %y output 16 f32[4] every`)
	require.Contains(t, text, "  barrier\n  #2 carry %y[0:16] -> %x[0:16] label \"next\"\n  barrier\n")

	for name, do := range map[string]func(s *record.Session, x, y record.Tensor){
		"no param $n":            func(s *record.Session, x, y record.Tensor) { s.Advance("n", 1) },
		"is not an output":       func(s *record.Session, x, y record.Tensor) { s.Every(x) },
		"advances by 4294967296": func(s *record.Session, x, y record.Tensor) { s.Advance("pos", 1<<32) },
		"from input to output":   func(s *record.Session, x, y record.Tensor) { s.Carry(y, x, "") },
	} {
		s := record.New("wrong")
		s.Param("pos", 0, 7)
		x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
		s.Add(x, x, record.Into(y))
		do(s, x, y)
		_, err := s.Finish()
		require.ErrorContains(t, err, name)
	}
}
