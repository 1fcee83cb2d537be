//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/hostqueue"
	"github.com/mlxc/mlxc/backend/internal/bound"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// queue implements [backend.Queue] by a stream.
type queue struct {
	*hostqueue.Queue
	x    *executor
	once sync.Once
	err  error
}

// NewQueue implements [backend.Device].
func (d *Device) NewQueue() (backend.Queue, error) {
	d.changed()
	x := &executor{Device: d}
	err := d.do(func() (err error) {
		if x.stream, err = driver.NewStream(); err != nil {
			return err
		}
		for i := range x.windows {
			if x.windows[i], err = driver.NewEvent(false); err != nil {
				return err
			}
		}
		x.begin, err = driver.NewEvent(true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: %w", errors.Join(err, x.close()))
	}
	return &queue{Queue: hostqueue.New(x, hostqueue.Options{}), x: x}, nil
}

// Close implements [backend.Queue].
func (q *queue) Close() error {
	err := q.Queue.Close()
	q.once.Do(func() { q.err = q.x.close() })
	return errors.Join(err, q.err)
}

// executor does the work of a queue.
type executor struct {
	*Device
	stream driver.Stream
	begin  driver.Event // where the operation that runs began
	// windows are events between parts of a replay ([window]).
	windows [2]driver.Event

	mu   sync.Mutex
	free []*staging // not in use
}

func (x *executor) close() error {
	return x.gpu.Do(func() error {
		var errs []error
		for _, s := range x.free {
			errs = append(errs, s.close())
		}
		for _, e := range []driver.Event{x.begin, x.windows[0], x.windows[1]} {
			if e != 0 {
				errs = append(errs, e.Destroy())
			}
		}
		if x.stream != 0 {
			errs = append(errs, x.stream.Destroy())
		}
		return errors.Join(errs...)
	})
}

// staged calls f with a staging of its own, on a thread on which the context is current.
func (x *executor) staged(f func(s *staging) error) error {
	return x.do(func() (err error) {
		x.mu.Lock()
		var s *staging
		if n := len(x.free); n > 0 {
			s, x.free = x.free[n-1], x.free[:n-1]
		}
		x.mu.Unlock()
		if s == nil {
			if s, err = newStaging(); err != nil {
				return err
			}
		}
		defer func() {
			x.mu.Lock()
			x.free = append(x.free, s)
			x.mu.Unlock()
		}()
		return f(s)
	})
}

// Accept implements [hostqueue.Executor].
func (x *executor) Accept(s *backend.Submission) error {
	e, ok := s.Executable.(*executable)
	if !ok || e.device != x.Device {
		return errors.New("cuda: the executable is of another device")
	}
	var owner *bound.Program
	room := 0
	if f, ok := s.Frame.(*frame); ok {
		owner, room = f.owner.program, f.room
	}
	if err := e.program.Accept(s, owner, room); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	return nil
}

// Forget implements [hostqueue.Executor].
func (x *executor) Forget(*backend.Submission) {}

// Overlap implements [hostqueue.Executor].
func (x *executor) Overlap(_, _ *backend.Submission) bool { return false }

// Uses implements [hostqueue.Executor].
func (x *executor) Uses(s *backend.Submission) (*ir.Graph, []backend.Place) {
	e := s.Executable.(*executable)
	return e.program.Graph, e.program.Uses(s)
}

// Upload implements [hostqueue.Executor].
func (x *executor) Upload(ctx context.Context, dst backend.Place, data []byte) error {
	to, err := x.own(dst, int64(len(data)))
	if err != nil {
		return err
	}
	return x.staged(func(s *staging) error {
		return hostqueue.Pieces(ctx, len(data), func(from, end int) error { return s.send(to+driver.Address(from), data[from:end]) })
	})
}

// Download implements [hostqueue.Executor].
func (x *executor) Download(ctx context.Context, data []byte, src backend.Place) error {
	from, err := x.own(src, int64(len(data)))
	if err != nil {
		return err
	}
	return x.staged(func(s *staging) error {
		return hostqueue.Pieces(ctx, len(data), func(begin, end int) error { return s.fetch(data[begin:end], from+driver.Address(begin)) })
	})
}

// Copy implements [hostqueue.Executor].
func (x *executor) Copy(ctx context.Context, dst, src backend.Place, n int64) error {
	to, err := x.own(dst, n)
	if err != nil {
		return err
	}
	from, err := x.own(src, n)
	if err == nil {
		return x.staged(func(s *staging) error {
			return errors.Join(driver.CopyWithin(s.stream, to, from, n), s.stream.Synchronize())
		})
	}
	return x.staged(func(s *staging) error {
		return hostqueue.Through(ctx, src, n, func(at int64, data []byte) error { return s.send(to+driver.Address(at), data) })
	})
}
