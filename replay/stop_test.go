package replay_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/replay"
)

// TestStopInsideACommand: the end of a context stops a run in the middle of a dispatch, and the device stays usable.
func TestStopInsideACommand(t *testing.T) {
	for _, name := range []string{"col_reduce_loope2e12", "col_reduce_small2e12"} {
		for _, workers := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d workers", name, workers), func(t *testing.T) {
				path := "../testdata/review/files/hc-" + name + ".mlxt"
				src, err := os.ReadFile(path)
				require.NoError(t, err)
				m, err := mlxt.Parse(t.Context(), path, src)
				require.NoError(t, err)
				d := cpu.New(workers)
				defer d.Close()
				s, err := replay.Open(d, m, replay.Options{})
				require.NoError(t, err)
				defer s.Close()
				g, err := s.Graph(context.Background(), "")
				require.NoError(t, err)
				seconds, ok, err := g.Work()
				require.NoError(t, err)
				require.True(t, ok)
				assert.Greater(t, seconds, 3600.0)
				for range 2 {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(20*time.Millisecond, cancel)
					_, err = g.Run(ctx)
					assert.ErrorIs(t, err, context.Canceled)
				}
				// A context that has ended affects only its own run.
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				for range 100 {
					_, err := g.Run(ended)
					require.ErrorIs(t, err, context.Canceled)
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
					_, err = g.Run(ctx)
					cancel()
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		}
	}
}
