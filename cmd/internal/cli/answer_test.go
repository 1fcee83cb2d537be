//go:build unix

package cli

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnswer checks that a Ctrl-C during an answer ends only the answer.
func TestAnswer(t *testing.T) {
	if signal.Ignored(syscall.SIGINT) { // as where a script runs the tests in the background
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, syscall.SIGINT)
		defer signal.Stop(caught)
	}
	ctx, signals := watchSignals("prog", &bytes.Buffer{})
	defer signal.Stop(signals.in)
	env := &Env{Context: ctx, signals: signals}
	for i := range 2 {
		if i > 0 {
			time.Sleep(twice + 10*time.Millisecond) // a second one sooner would end the command
		}
		answer, release := env.Answer()
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT))
		select {
		case <-answer.Done():
		case <-time.After(time.Minute):
			t.Fatal("the answer goes on")
		}
		release()
		assert.NoError(t, ctx.Err())
		assert.Zero(t, signals.code())
	}
	_, release := env.Answer()
	release()
	assert.Nil(t, signals.inner.Load(), "a signal between answers is the command's")

	parent, cancel := context.WithCancel(t.Context())
	env = &Env{Context: parent} // no signals
	answer, release := env.Answer()
	defer release()
	cancel()
	assert.Error(t, answer.Err())
}
