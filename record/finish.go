package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// FinishOption changes what [Encoder.Finish] does.
type FinishOption func(*finishing)

type finishing struct {
	optimizer Optimizer
	noWait    bool
	err       error
}

// Optimizer rewrites a recording. The graph that it returns must compute the same as
// recorded, have memories and params of the same names, and be ordered by barriers. It
// must not change recorded. Package optimize has an Optimizer that proves its result.
type Optimizer interface {
	Optimize(ctx context.Context, recorded *ir.Graph) (*ir.Graph, error)
}

// Optimize rewrites the recording with o before it is executed. The encoder must be
// [Deferred], or only capture.
func Optimize(o Optimizer) FinishOption {
	return func(f *finishing) {
		if f.optimizer != nil {
			f.err = errors.New("given twice")
		}
		f.optimizer = o
	}
}

// NoWait makes Finish return without waiting for the device. [Result.Wait] waits.
func NoWait() FinishOption { return func(f *finishing) { f.noWait = true } }

// Result describes a finished recording.
type Result struct {
	// Graph is the recording, or the part of it that was captured; nil if nothing was
	// captured.
	Graph *ir.Graph
	// Optimized is what the [Optimizer] made of Graph; nil if there was none.
	Optimized *ir.Graph
	// Groups describes which commands may run side by side.
	Groups GroupStats
	// Encode is the host's time from the first command to the last commit.
	Encode time.Duration
	// Counters are the encoder's counters at the end of Finish.
	Counters Counters

	// The fields that follow are complete after [Result.Wait]. Warnings is what the caller
	// should know, for example that times are missing, or, in a recording that was executed
	// live, that a command reads undefined bytes.
	GPU            time.Duration         // the device's time, the sum over the command buffers
	Waited         time.Duration         // how long the host waited in Wait
	CommandBuffers []CommandBufferResult // in the order of their commits
	Warnings       []string

	e       *Encoder
	found   conflictLog
	pending []*submitted
	waited  bool
	err     error
}

// CommandBufferResult is one command buffer that was executed.
type CommandBufferResult struct {
	Label    string
	Commands int
	Barriers int
	Times    backend.Times
	Err      error
}

// Finish ends the recording and begins the next one. Declarations stay valid, and tensors
// of the scratch arena are given back. On a device it commits what is left, executes what
// is [Deferred], and waits for all of it, except with [NoWait].
//
// If Finish returns the first mistake of the recording, or another error from before the
// wait, it returns no Result, and the recording was abandoned: commands that were not
// committed before are not executed, and no command buffer is left open. If command buffers
// fail, it returns their errors together with the Result.
func (e *Encoder) Finish(options ...FinishOption) (*Result, error) {
	var f finishing
	for _, o := range options {
		o(&f)
	}
	r, err := e.finish(&f)
	if err != nil {
		e.Discard()
		var failed error
		if e.device != nil { // what was committed before runs on; tell what became of it
			failed = e.device.wait()
			e.device.pending, e.device.begin = nil, time.Time{}
		}
		e.restart()
		if failed != nil && !errors.Is(err, failed) {
			err = errors.Join(err, failed)
		}
		return nil, err
	}
	e.restart()
	if e.on == nil || f.noWait {
		return r, nil
	}
	e.counters.add(syncs, 1)
	err = r.Wait()
	r.Counters = e.Counters()
	return r, err
}

func (e *Encoder) finish(f *finishing) (*Result, error) {
	_ = e.ended("Finish")
	switch e.aborted(); {
	case e.err != nil:
	case e.depth > 0:
		e.fail("Finish: %d groups are still open: call EndGroup for each", e.depth)
	case f.err != nil:
		e.fail("Optimize: %w", f.err)
	case f.optimizer != nil && e.live():
		e.fail("Finish: Optimize rewrites what was recorded, and this recording has been executed: use Deferred")
	case f.noWait && e.on == nil:
		e.fail("Finish: NoWait: %s", e.whyNot())
	}
	if e.err != nil {
		return nil, e.err
	}
	r := &Result{Groups: e.Groups(), found: e.found, e: e}
	if e.records() || e.captured >= 0 {
		from := 0
		if !e.records() {
			from = e.captured
		}
		var err error
		if r.Graph, r.Warnings, err = e.recorded(from); err != nil {
			return nil, err
		}
	}
	if e.dump != "" {
		path := e.dump
		e.dump = ""
		if err := dump(path, r.Graph); err != nil {
			return nil, fmt.Errorf("record %s: %s: %w", ir.QuoteName(e.g.Name), DumpVariable, err)
		}
	}
	execute := r.Graph
	if f.optimizer != nil {
		var err error
		if r.Optimized, err = e.optimize(r.Graph, f.optimizer); err != nil {
			return nil, err
		}
		execute = r.Optimized
	}
	switch {
	case e.live():
		e.Commit(e.g.Name)
	case e.deferred:
		e.ok(e.device.execute(e.ctx, execute))
	}
	if e.err != nil {
		return nil, e.err
	}
	if d := e.device; d != nil {
		r.pending, d.pending = d.pending, nil
		if !d.begin.IsZero() {
			r.Encode = d.last.Sub(d.begin)
		}
		d.begin = time.Time{}
	}
	r.Counters = e.Counters()
	return r, nil
}

func (e *Encoder) optimize(g *ir.Graph, o Optimizer) (*ir.Graph, error) {
	out, err := o.Optimize(e.ctx, g)
	if err != nil {
		return nil, fmt.Errorf("record %s: Optimize: %w; nothing is executed", ir.QuoteName(e.g.Name), err)
	}
	if out.Ordering == ir.ByEdges {
		return nil, fmt.Errorf("record %s: Optimize: command buffers are ordered by barriers, and the result by edges: leave the pass edges out", ir.QuoteName(e.g.Name))
	}
	return out, nil
}

// Conflicts returns the conflict behind each automatic barrier of the recording.
func (r *Result) Conflicts() []Conflict { return r.found.list(r.e.g, false) }

// Races returns the conflicts that no barrier orders, which only [ManualBarriers] leaves. If
// there are very many, only the first ones are kept.
func (r *Result) Races() []Conflict { return r.found.list(r.e.g, true) }

// Wait waits until the recording's command buffers have ended, and returns the errors of
// all that failed. Call it on the encoder's goroutine. After the first call it returns the
// same error again.
func (r *Result) Wait() error {
	if r.waited || r.e.device == nil {
		return r.err
	}
	r.waited = true
	var errs []error
	unsampled := 0
	start := time.Now()
	for _, s := range r.pending {
		errs = append(errs, s.tell())
		x := s.buffer.Result()
		r.CommandBuffers = append(r.CommandBuffers, CommandBufferResult{Label: s.label, Commands: s.commands, Barriers: s.barriers, Times: x.Times, Err: x.Err})
		r.GPU += x.Times.Duration()
		unsampled += x.Times.Unsampled
	}
	r.Waited = time.Since(start)
	if unsampled > 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d dispatches have no time, because a command buffer has room for a limited number of samples, or the GPU has taken none: commit more often", unsampled))
	}
	if w := r.e.device.samplingWarning(); w != "" {
		r.Warnings = append(r.Warnings, w)
	}
	r.e.device.reap()
	if err := errors.Join(errs...); err != nil {
		r.err = fmt.Errorf("record %s: %w", r.e.g.Name, err)
	}
	return r.err
}
