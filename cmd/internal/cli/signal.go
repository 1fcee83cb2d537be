package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mlxc/mlxc/internal/files/atomicfile"
)

// grace is how long a command may take to end by itself after it was asked to: it
// removes what it has begun to write, and says so. After that the process is ended,
// because a command cannot react while, for example, it reads from a pipe to which
// nobody writes.
const grace = 600 * time.Millisecond

// signals watches for signals that ask the process to end: Ctrl-C, SIGTERM, and SIGHUP
// when a terminal is closed.
type signals struct {
	name string
	got  atomic.Int32 // the first signal; 0: none yet
	in   chan os.Signal
	// inner, if not nil, is what a Ctrl-C ends in place of the command.
	inner atomic.Pointer[context.CancelFunc]
}

// The first Ctrl-C ends an answer. A second one within this time ends the command, even if the next
// answer has already begun.
const twice = time.Second

// Answer returns a context for one answer in a conversation. Until release is called, a
// Ctrl-C ends that context and not the command; a second one in a row ends the command.
func (e *Env) Answer() (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancel(e.Context)
	if e.signals == nil {
		return ctx, cancel
	}
	e.signals.inner.Store(&cancel)
	return ctx, func() {
		e.signals.inner.Store(nil)
		cancel()
	}
}

// watchSignals returns a context that the first signal cancels. Signals that the
// process was started to ignore, as by nohup, stay ignored.
func watchSignals(name string, stderr io.Writer) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &signals{name: name, in: make(chan os.Signal, 2)}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			signal.Notify(s.in, sig)
		}
	}
	go func() {
		sig, _ := (<-s.in).(syscall.Signal)
		for before := (time.Time{}); sig == syscall.SIGINT && time.Since(before) > twice; {
			answer := s.inner.Swap(nil)
			if answer == nil {
				break
			}
			before = time.Now()
			(*answer)()
			sig, _ = (<-s.in).(syscall.Signal)
		}
		s.got.Store(int32(sig))
		cancel()
		select {
		case <-s.in: // a second signal does not wait
		case <-time.After(grace):
		}
		atomicfile.Abandon()
		s.say(stderr)
		os.Exit(s.code())
	}()
	return ctx, s
}

// code returns the exit code after a signal, as shells expect it: 130 for Ctrl-C, 143
// for SIGTERM, 129 for SIGHUP; 0 if there was no signal.
func (s *signals) code() int {
	if n := s.got.Load(); n != 0 {
		return 128 + int(n)
	}
	return 0
}

func (s *signals) say(w io.Writer) {
	what := "interrupted"
	switch syscall.Signal(s.got.Load()) {
	case syscall.SIGTERM:
		what = "terminated"
	case syscall.SIGHUP:
		what = "hung up"
	}
	fmt.Fprintf(w, "%s: %s\n", s.name, what)
}
