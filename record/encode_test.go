package record_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

// A graph that is encoded into another session, before or after passes, computes what its
// own session would, with its own barriers and with recomputed ones.
func TestEncodeOfOptimizedGraphs(t *testing.T) {
	for seed := 1; seed <= 8; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		progs := []program{draw(r), draw(r)}
		c := cpu.New(1)
		d := testdevice.New(c, testdevice.Options{})
		var plain, opt []*ir.Graph
		for i, p := range progs {
			s := record.New([]string{"a", "b"}[i], record.Deferred(d))
			s.SetParam("n", 0)
			_, _ = s.Finish()
			w := newWorld(s)
			s.SetParam("n", 2)
			p.run(w)
			pass := record.Optimize(optimize.New(""))
			if seed%2 == 0 {
				pass = record.Optimize(optimize.New("annotate,fuse,dce,rename,schedule,barriers,plan,split"))
			}
			res, err := s.Finish(pass)
			require.NoError(t, err)
			plain, opt = append(plain, res.Graph), append(opt, res.Optimized)
			require.NoError(t, s.Close())
		}
		var want [][]byte
		for mode := range 5 {
			var s *record.Session
			if mode == 4 {
				s = record.New("t", record.Deferred(d))
			} else {
				s = record.New("t", record.Live(d))
			}
			s.Param("other", 3, 3) // so that params have other numbers in this session
			w := newWorld(s)
			s.SetParam("n", float64(seed%4))
			b, err := s.Bytes(w.in)
			require.NoError(t, err)
			copy(b, values(seed, 1))
			for round := range 4 {
				switch i := round % 2; mode {
				case 0:
					progs[i].run(w)
				case 1:
					s.Encode(plain[i])
				case 2:
					s.Encode(opt[i])
				case 3:
					s.EncodeRecomputed(opt[i])
				case 4:
					s.EncodeRecomputed(opt[i])
				}
				if round == 1 && seed%3 == 0 {
					s.Commit("mid")
				}
			}
			var fin []record.FinishOption
			if mode == 4 {
				fin = append(fin, record.Optimize(optimize.New("")))
			}
			_, err = s.Finish(fin...)
			require.NoError(t, err, "seed %d mode %d", seed, mode)
			for i, x := range append(append([]record.Tensor{}, w.states...), w.outs...) {
				b, err := s.Bytes(x)
				require.NoError(t, err)
				if mode == 0 {
					want = append(want, bytes.Clone(b))
				} else {
					require.Equal(t, want[i], b, "seed %d mode %d", seed, mode)
				}
			}
			require.NoError(t, s.Close())
		}
		require.Empty(t, d.Leaks())
		require.NoError(t, c.Close())
	}
}
