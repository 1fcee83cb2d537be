package textgen

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// rowOf is a frame with room for the tokens that one submission decodes; most is their max number.
type rowOf struct {
	frame *replay.Frame
	most  int
}

// advances returns an error if a decode graph does not advance its position and carry
// its token to the next replay.
func (s *step) advances() error {
	const how = "(mlxc record, without --no-advance)"
	g := s.IR()
	if s.position.Advance != 1 {
		return fmt.Errorf("%s does not advance %s by 1 from replay to replay %s", s, s.param(s.position.Name), how)
	}
	token, _ := g.MemoryNamed(s.names.Token)
	if !g.Memories[token].Every {
		return fmt.Errorf("%s keeps %s of the last replay only %s", s, s.memory(s.names.Token), how)
	}
	for _, n := range g.Nodes {
		if c, ok := n.(*ir.Carry); ok && c.Src.Mem == token && g.Memories[c.Dst.Mem].Name == s.names.Tokens {
			return nil
		}
	}
	return fmt.Errorf("%s does not carry %s to %s %s", s, s.memory(s.names.Token), s.memory(s.names.Tokens), how)
}

func (m *Model) checkRow(o Options) error {
	switch {
	case o.Row < 0:
		return fmt.Errorf("%d tokens in a row make no sense", o.Row)
	case o.Row <= 1:
		return nil
	case o.Temp > 0 && m.decode.names.Draw == nil:
		return fmt.Errorf("%d tokens in a row: %s picks the most likely token itself; sampling (temperature %v) needs the host after each, or a graph that draws (mlxc record --sample)", o.Row, m.decode, o.Temp)
	case o.Logits != nil:
		return fmt.Errorf("%d tokens in a row: the logits of all but the last are gone", o.Row)
	}
	return m.decode.advances()
}

// Lengths of rows if Options.Row is 0. A row should take rowTakes: short enough that text seems to flow, and long
// compared to the host's work between two rows. The first has firstRow tokens, since the speed is not known yet.
const (
	rowTakes  = 40 * time.Millisecond
	firstRow  = 4
	longestOf = 128
)

// warm decodes some tokens on a GPU and discards them. The first launches load code and make CUDA graphs, which takes
// some 30 ms: that belongs to opening the model, not to the first answer. It also measures the model's speed.
func (m *Model) warm(ctx context.Context) error {
	o := Options{TopP: 1}
	if !m.inRows(o) || m.context < 2*firstRow {
		return nil
	}
	for n := 0; n < m.rowLength(o); { // until a row is as long as those that answers will have
		n = min(m.rowLength(o), m.context)
		if _, err := m.decodeRow(ctx, 0, 0, n, o); err != nil {
			return err
		}
		if n == m.context {
			break
		}
	}
	if m.prefill != nil {
		if err := m.prefill.SetParam(m.prefill.names.Count, 1); err != nil {
			return err
		}
		if _, err := m.run(ctx, m.prefill, []int32{0}, 0, o); err != nil {
			return err
		}
	}
	m.ran = nil
	return m.instance.ResetStates()
}

// inRows reports whether rows are possible and better than single steps. That is so on GPUs only: on the host
// submissions cost nothing, and single steps give each token as soon as it is known.
func (m *Model) inRows(o Options) bool {
	o.Row = longestOf
	return m.Device.Info().Submits && m.checkRow(o) == nil
}

// rowLength returns the number of tokens that the next row decodes.
func (m *Model) rowLength(o Options) int {
	switch {
	case o.Row > 0:
		return o.Row
	case m.pace == 0:
		return firstRow
	}
	return int(min(longestOf, max(1, rowTakes/m.pace)))
}

// decodeRow decodes n tokens after id, which has position pos, in one submission.
func (m *Model) decodeRow(ctx context.Context, id int32, pos, n int, o Options) (found []int32, err error) {
	if m.row.most < n {
		most := o.Row
		if most == 0 {
			most = longestOf
		}
		if m.row.frame, err = m.decode.NewRowFrame(ctx, most); err != nil {
			return nil, err
		}
		m.row.most = most
	}
	f := m.row.frame
	if err := f.SetInput(m.decode.names.Tokens, binary.LittleEndian.AppendUint32(nil, uint32(id))); err != nil {
		return nil, err
	}
	if err := m.decode.setDraw(f.SetParam, o); err != nil {
		return nil, err
	}
	if err := f.SetParam(m.decode.names.Position, float64(pos)); err != nil {
		return nil, err
	}
	ran := m.ran
	m.ran = nil // until the row has succeeded, the states are unknown
	start := time.Now()
	t, err := f.RunRow(ctx, n)
	if err != nil {
		return nil, err
	}
	m.pace = max(1, time.Since(start)/time.Duration(n))
	if o.Timing != nil {
		o.Timing(m.decode.IR(), t)
	}
	for i := range n {
		id, err := m.decode.token(func(name string, to []byte) error {
			out, err := f.OutputOf(name, i)
			copy(to, out)
			return err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	m.ran = append(append(ran, id), found[:n-1]...)
	return found, nil
}
