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

// grace is how long a command has to end by itself once it was asked to: it
// undoes what it began, and says so. What cannot be asked, as a read of a pipe
// that nobody writes to, is ended.
const grace = 600 * time.Millisecond

// signals watches for those that ask a process to end: Ctrl-C, SIGTERM, and SIGHUP
// of a terminal that is closed.
type signals struct {
	name string
	got  atomic.Int32 // the first signal, 0 for none
	in   chan os.Signal
	// inner is what a Ctrl-C ends instead of the command, if anything.
	inner atomic.Pointer[context.CancelFunc]
}

// twice is how soon after a Ctrl-C that ended an answer another one ends the
// command, whatever that does by then: the next answer may have begun.
const twice = time.Second

// Answer returns a context for one answer of a conversation: until release is
// called, a Ctrl-C ends it and not the command, but for the second of two in a row.
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

// watchSignals returns a context that the first signal ends. A signal that the
// process was started to ignore, as by nohup, stays ignored.
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
		case <-s.in: // a second one does not wait
		case <-time.After(grace):
		}
		atomicfile.Abandon()
		s.say(stderr)
		os.Exit(s.code())
	}()
	return ctx, s
}

// code is the exit code after a signal, as shells have it: 130 for Ctrl-C, 143 for
// SIGTERM, 129 for SIGHUP; 0 if there was none.
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
