package interrupt_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// work polls until it is stopped, at most n times.
func work(ctx context.Context, n int) (done int, err error) {
	defer interrupt.Catch(&err)
	for done = range n {
		interrupt.Poll(ctx)
	}
	return n, nil
}

func TestWorkEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	n, err := work(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, 10, n)
	why := errors.New("why")
	cancel(why)
	_, err = work(ctx, 10)
	require.ErrorIs(t, err, why)

	// A nil context never ends.
	_, err = work(nil, 10) //nolint:staticcheck // that is what is tested
	require.NoError(t, err)
}

func TestEveryPolls(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var e interrupt.Every
	steps := 0
	err := func() (err error) {
		defer interrupt.Catch(&err)
		for range 100 {
			e.Poll(ctx, 10)
			steps++
		}
		return nil
	}()
	require.ErrorIs(t, err, context.Canceled)
	require.Less(t, steps, 11)
}

func TestOtherPanicsPass(t *testing.T) {
	require.PanicsWithValue(t, "mine", func() {
		var err error
		defer interrupt.Catch(&err)
		panic("mine")
	})
}

func TestWriterEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var b strings.Builder
	w := interrupt.Writer(ctx, &b)
	_, err := w.Write([]byte("a"))
	require.NoError(t, err)
	cancel()
	_, err = w.Write([]byte("b"))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, "a", b.String())
}
