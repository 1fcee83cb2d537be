package backend_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
)

// TestTimesFit: Fit moves times into the span of their command buffer if the two clocks disagree, and keeps their
// order and durations.
func TestTimesFit(t *testing.T) {
	zero := time.Unix(100, 0)
	span := func(from, to time.Duration) backend.Span {
		return backend.Span{Begin: zero.Add(from), End: zero.Add(to)}
	}
	commands := func(spans ...backend.Span) (all []backend.CommandTime) {
		for _, s := range spans {
			all = append(all, backend.CommandTime{Span: s})
		}
		return all
	}
	for _, c := range []struct {
		name        string
		buffer      backend.Span
		given, want []backend.CommandTime
	}{
		{"none", span(0, 10), nil, nil},
		{"within", span(0, 10), commands(span(1, 3), span(3, 9)), commands(span(1, 3), span(3, 9))},
		{"early", span(100, 110), commands(span(50, 52), span(53, 54)), commands(span(100, 102), span(103, 104))},
		{"late", span(0, 10), commands(span(8, 9), span(11, 14)), commands(span(4, 5), span(7, 10))},
		{"long", span(0, 10), commands(span(20, 28), span(28, 40)), commands(span(0, 4), span(4, 10))},
		{"out of order", span(0, 10), commands(span(11, 14), span(8, 9)), commands(span(7, 10), span(4, 5))},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := backend.Times{Span: c.buffer, Commands: c.given}
			x.Fit(0)
			require.Equal(t, c.want, x.Commands)
		})
	}
}
