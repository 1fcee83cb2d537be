package textgen_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// TestRoom: a model that does not fit a device's memory is refused before the device is asked for anything, and the
// context that the error names is the longest that fits.
func TestRoom(t *testing.T) {
	model := func(context int64, cache ir.DType) (m *ir.Module, bytes int64) {
		m = recorded(t, frontend.Options{Context: context, Cache: cache, Prefill: 8, Mapped: true, Unread: true})
		seen := map[any]bool{}
		for _, g := range m.Graphs {
			for i := range g.Memories {
				x := &g.Memories[i]
				key := any(x)
				if x.Init.Blob != nil {
					key = x.Init.Blob
				} else if x.Kind == ir.State {
					key = x.Name
				}
				if x.Alias == ir.NoMem && !seen[key] {
					bytes += x.Size
					seen[key] = true
				}
			}
		}
		return m, bytes
	}
	open := func(m *ir.Module, memory int64) error {
		c := cpu.New(1)
		defer c.Close()
		d := testdevice.New(c, testdevice.Options{Info: func(i *backend.Info) { i.Memory = memory }})
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what is not refused ends early
		opened, err := textgen.Open(ctx, d, m, replay.Options{})
		require.Error(t, err)
		require.Nil(t, opened)
		require.Empty(t, d.Leaks())
		return err
	}
	m, all := model(64, ir.F32)
	require.ErrorIs(t, open(m, all), context.Canceled)
	err := open(m, all-1)
	require.ErrorContains(t, err, "a context of 63 fits: record with --context 63; with --cache f16 one of 64, with q8_0 of 64")
	require.ErrorContains(t, err, "for a context of 64 positions")
	require.ErrorContains(t, open(m, 1<<20), "no context fits")

	_, less := model(40, ir.F32)
	room := less + (all-less)/100
	text := open(m, room).Error()
	var fitting, half int64
	_, err = fmt.Sscanf(text[strings.Index(text, "--context"):], "--context %d; with --cache f16 one of %d", &fitting, &half)
	require.NoError(t, err, text)
	require.Greater(t, half, fitting)
	for _, x := range []struct {
		context int64
		cache   ir.DType
	}{{fitting, ir.F32}, {half, ir.F16}} {
		m, need := model(x.context, x.cache)
		require.LessOrEqual(t, need, room)
		require.ErrorIs(t, open(m, room), context.Canceled)
	}

	m, all = model(64, ir.F16)
	require.NotContains(t, open(m, all-1).Error(), "--cache")
}
