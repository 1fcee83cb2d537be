package record_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

// While command buffers run, memory is given back, commands are discarded, and bytes are
// asked for. No command buffer loses its memory, nothing leaks, and every fault is returned
// and counted.
func TestRandomCallsOnASlowDevice(t *testing.T) {
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		c := cpu.New(1)
		faulty := seed%4 == 3
		boom := errors.New("boom")
		faults := map[int]bool{}
		d := testdevice.New(c, testdevice.Options{Hold: true, Fault: func(n int, _ string) error {
			if faulty && n%5 == 2 {
				faults[n] = true
				return boom
			}
			return nil
		}})
		mode := record.Live(d)
		deferred := seed%3 == 0
		if deferred {
			mode = record.Deferred(d)
		}
		s := record.New("t", mode)
		stop := make(chan bool)
		go func() { // a slow device
			for {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Microsecond):
					d.Release(1)
				}
			}
		}()
		p := s.NewPool("p", ir.Scratch)
		state := s.State("s", ir.F32, 64)
		var live []record.Tensor
		var results []*record.Result
		told := 0
		seen := func(err error) {
			if err == nil {
				return
			}
			if !faulty || !errors.Is(err, boom) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			told++
		}
		for step := range 60 {
			if s.Err() != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, s.Err())
			}
			switch r.IntN(13) {
			case 0, 1:
				a := p.Alloc(ir.F32, int64(64<<r.IntN(3)))
				s.Fill(a, 1, "")
				live = append(live, a)
			case 2, 3:
				if len(live) > 0 {
					a := live[r.IntN(len(live))]
					s.Silu(a)
					s.Silu(a)
				}
				s.Add(state, state, record.Into(state))
			case 4:
				if len(live) > 0 {
					k := r.IntN(len(live))
					p.Free(live[k])
					live = append(live[:k], live[k+1:]...)
				}
			case 5, 6:
				p.Trim()
			case 7:
				s.Commit(fmt.Sprint("c", step))
			case 8:
				s.Discard()
			case 9:
				time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
			case 10:
				x := state
				if len(live) > 0 && r.IntN(2) > 0 {
					x = live[0]
				}
				if b, err := s.Bytes(x); err == nil { // no command buffer uses it, so the host may write
					for i := range b {
						b[i] = 0
					}
				}
			case 11:
				var o []record.FinishOption
				if deferred && r.IntN(2) > 0 {
					o = append(o, record.Optimize(optimize.New("annotate,rename,schedule,barriers,plan,split")))
				}
				res, err := s.Finish(append(o, record.NoWait())...)
				seen(err)
				if res != nil {
					results = append(results, res)
				}
			case 12:
				if len(live) > 0 { // a dispatch that is begun and never ended
					s.Dispatch(s.Function("v_Silufloat32float32")).Buffer(0, live[0])
					_, _ = s.Bytes(live[0])
					s.Discard()
				}
			}
		}
		d.ReleaseAll()
		if r.IntN(2) > 0 {
			for _, res := range results {
				seen(res.Wait())
			}
		}
		if _, err := s.Finish(); err != nil {
			seen(err)
		}
		seen(s.Close())
		if len(faults) > 0 && told == 0 {
			t.Fatalf("seed %d: %d faults, but no error was returned", seed, len(faults))
		}
		close(stop)
		require.Empty(t, d.Leaks(), "seed %d", seed)
		if n := s.Counters().FailedBuffers; int(n) != len(faults) {
			t.Fatalf("seed %d: %d faults, but the counter has %d", seed, len(faults), n)
		}
		require.NoError(t, c.Close())
	}
}
