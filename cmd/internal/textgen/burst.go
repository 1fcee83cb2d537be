package textgen

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// burstFrame is a frame with room for the tokens that one submission decodes; most is their max number.
type burstFrame struct {
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

func (m *Model) checkBurst(o Options) error {
	switch {
	case o.Burst < 0:
		return fmt.Errorf("%d tokens in a burst make no sense", o.Burst)
	case o.Burst <= 1:
		return nil
	case o.OnHost():
		return fmt.Errorf("%d tokens in a burst: top-k, min-p and the penalty for repetitions need the host after each", o.Burst)
	case o.Temp > 0 && m.decode.names.Draw == nil:
		return fmt.Errorf("%d tokens in a burst: %s picks the most likely token itself; sampling (temperature %v) needs the host after each, or a graph that draws (mlxc record --sample)", o.Burst, m.decode, o.Temp)
	case o.Logits != nil:
		return fmt.Errorf("%d tokens in a burst: the logits of all but the last are gone", o.Burst)
	}
	return m.decode.advances()
}

// These are the lengths of bursts if Options.Burst is 0. A burst should take burstTakes: short enough that text seems
// to flow, and long compared to the host's work between two bursts. The first has firstBurst tokens, since the speed is not known yet.
const (
	burstTakes   = 40 * time.Millisecond
	firstBurst   = 4
	longestBurst = 128
)

// warm decodes some tokens on a GPU and discards them. The first launches load code and make CUDA graphs, which takes
// some 30 ms: that belongs to opening the model, not to the first answer. It also measures the model's speed.
func (m *Model) warm(ctx context.Context) error {
	o := Options{TopP: 1}
	if !m.inBursts(o) || m.context < 2*firstBurst {
		return nil
	}
	for n := 0; n < m.burstLength(o); { // until a burst is as long as those that answers will have
		n = min(m.burstLength(o), m.context)
		if _, err := m.decodeBurst(ctx, 0, 0, n, o); err != nil {
			return err
		}
		if n == m.context {
			break
		}
	}
	for _, g := range []*step{m.prefill, m.verify} {
		if g == nil {
			continue
		}
		if _, err := m.runSeveral(ctx, g, []int32{0}, 0, o); err != nil {
			return err
		}
	}
	m.ran = nil
	return m.instance.ResetStates()
}

// inBursts reports whether bursts are possible and better than single steps. That is so on GPUs only: on the host
// submissions cost nothing, and single steps give each token as soon as it is known.
func (m *Model) inBursts(o Options) bool {
	o.Burst = longestBurst
	return m.Device.Info().Submits && m.checkBurst(o) == nil
}

// burstLength returns the number of tokens that the next burst decodes.
func (m *Model) burstLength(o Options) int {
	switch {
	case o.Burst > 0:
		return o.Burst
	case m.pace == 0:
		return firstBurst
	}
	return int(min(longestBurst, max(1, burstTakes/m.pace)))
}

// decodeBurst decodes n tokens after id, which has position pos, in one submission.
func (m *Model) decodeBurst(ctx context.Context, id int32, pos, n int, o Options) (found []int32, err error) {
	if m.burst.most < n {
		most := o.Burst
		if most == 0 {
			most = longestBurst
		}
		if m.burst.frame, err = m.decode.NewBurstFrame(ctx, most); err != nil {
			return nil, err
		}
		m.burst.most = most
	}
	f := m.burst.frame
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
	m.ran = nil // until the burst has succeeded, the states are unknown
	start := time.Now()
	t, err := f.RunBurst(ctx, n)
	if err != nil {
		return nil, err
	}
	m.pace = max(1, time.Since(start)/time.Duration(n))
	if o.Timing != nil {
		o.Timing(m.decode.IR(), t)
	}
	for i := range n {
		out, err := f.OutputOf(m.decode.names.Token, i)
		if err != nil {
			return nil, err
		}
		found = append(found, int32(binary.LittleEndian.Uint32(out)))
	}
	m.ran = append(append(ran, id), found[:n-1]...)
	return found, nil
}
