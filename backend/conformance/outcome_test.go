package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
)

// TestExamine: only chosen tests run; those that pass have no errors, and those that a defect breaks have some.
func TestExamine(t *testing.T) {
	device := cpu.New(1)
	defer device.Close()
	forgets := broken{Device: device, change: drop(func(n ir.Node) bool { _, ok := n.(*ir.Copy); return ok })}
	o := Options{Cases: 4, Unsupported: map[string]string{"copy/empty": "a reason"}}
	last := -1.0
	begun, outcomes := "", map[string]Outcome{}
	e := Examination{
		Choose: func(name string) bool { return strings.HasPrefix(name, "copy/") || name == "kernel/vv_Addfloat32" },
		Begin: func(name string, done float64) {
			assert.Greater(t, done, last)
			begun, last = name, done
		},
		Each: func(x Outcome) {
			assert.True(t, x.Name == begun || x.Unsupported != "")
			outcomes[x.Name] = x
		},
	}
	require.NoError(t, Examine(t.Context(), forgets, o, e))
	assert.Less(t, last, 1.0)
	assert.NotEmpty(t, outcomes["copy/bytes"].Errors)
	assert.Equal(t, Outcome{Name: "copy/empty", Unsupported: "a reason"}, outcomes["copy/empty"])
	assert.Equal(t, Outcome{Name: "kernel/vv_Addfloat32"}, outcomes["kernel/vv_Addfloat32"])
	for name := range outcomes {
		assert.True(t, e.Choose(name))
	}
}

// stuck is a device whose NewQueue does not return before until is closed.
type stuck struct {
	backend.Device
	until chan struct{}
}

func (s stuck) NewQueue() (backend.Queue, error) {
	<-s.until
	return nil, errors.New("too late")
}

// TestExamineEnds: a run ends when its context does, or a test hangs, without waiting for the test.
func TestExamineEnds(t *testing.T) {
	device := stuck{cpu.New(1), make(chan struct{})}
	defer close(device.until)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	var outcomes []Outcome
	e := Examination{
		Choose: func(name string) bool { return strings.HasPrefix(name, "copy/") },
		Begin:  func(string, float64) { cancel(stop) },
		Each:   func(x Outcome) { outcomes = append(outcomes, x) },
	}
	require.ErrorIs(t, Examine(ctx, device, Options{}, e), stop)
	assert.Empty(t, outcomes)

	e.Patience = time.Millisecond
	require.ErrorIs(t, Examine(t.Context(), device, Options{}, e), ErrHangs)
	require.Len(t, outcomes, 1)
	assert.Equal(t, []string{"it has not ended after 1ms"}, outcomes[0].Errors)
}
