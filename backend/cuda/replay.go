//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mlxc/mlxc/backend"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// Replay implements [hostqueue.Executor].
func (x *executor) Replay(ctx context.Context, s *backend.Submission, r *backend.Result) error {
	work := "graph " + ir.QuoteName(s.Executable.(*executable).program.Graph.Name)
	return x.do(func() error { return x.note(work, x.replays(ctx, s, r)) })
}

func (x *executor) replays(ctx context.Context, s *backend.Submission, r *backend.Result) (err error) {
	e := s.Executable.(*executable)
	g, places := x.Uses(s)
	own := s.Frame.(*frame)
	params := append(slices.Clone(s.Params), 0)
	turn := 0 // number of launches so far, which selects the slot
	x.ranges.Push(e.name)
	defer x.ranges.Pop()
	if err := x.begin.Record(x.stream); err != nil {
		return err
	}
	flight, first := 0, 0 // launches that were not waited for; the first replay of the earliest of them
	broken := false
	land := func(most int) {
		for flight > most {
			in := &own.slots[(turn-flight)%len(own.slots)]
			flight--
			landed := in.end.Synchronize()
			if err == nil {
				err = landed
			}
			// Replays count as done if their launch was submitted whole, and neither it nor one before has failed.
			if broken = broken || landed != nil || !in.whole; broken {
				r.Torn = true
				continue
			}
			for i := first; i < first+in.replays; i++ {
				r.Replays++
				if s.Ended != nil {
					s.Ended(i)
				}
			}
			first += in.replays
		}
	}
	timed := len(r.Times.Commands)
	launched := 0 // replays that were submitted, the last ones perhaps only in part
	for i := 0; i < s.Count() && err == nil; {
		if err = context.Cause(ctx); err != nil {
			break
		}
		if land(len(own.slots) - 1); err != nil {
			break
		}
		in := &own.slots[turn%len(own.slots)]
		before := time.Now()
		l := own.launches[turn%len(own.launches)]
		words := frameWords(g)
		staged := in.memory[words:]
		for k := range g.Memories {
			m := &g.Memories[k]
			if places[k].Buffer == nil || m.Alias != ir.NoMem {
				continue
			}
			if m.Every && i > 0 && e.rules == nil {
				places[k] = places[k].Add(m.Size)
			}
			// With rules the GPU itself updates what differs between the replays of a submission.
			if m.Kind == ir.Argument && own.Place(ir.MemID(k)).Buffer != nil && (i == 0 || e.rules == nil) {
				m.WriteValues(staged[:m.Size], params)
				to, _ := x.own(places[k], m.Size)
				if err = driver.CopyToDevice(x.stream, to, staged[:m.Size]); err != nil {
					break
				}
				staged = staged[(m.Size+15)&^15:]
			}
		}
		if err == nil {
			err = l.bring(x.stream, x.addresses(places), params, in.memory[:words])
		}
		if err != nil {
			break
		}
		in.replays = 1
		switch next := i+1 < s.Count(); {
		case e.program.Profile:
			launched++
			err = x.timed(l, r, next)
		case e.stream:
			launched++
			err = x.start(ctx, l, next)
		default:
			if s.Count()-i >= batch && !g.NextHost && batch*len(e.steps) <= mostNodes {
				in.replays = batch
			}
			var t *topology
			if t, err = l.topology(in.replays); err == nil {
				launched += in.replays
				err = t.launch(l, x.stream, i+in.replays < s.Count())
			}
		}
		if err == nil {
			l.advanced(in.replays)
		} else {
			l.known = nil
		}
		err = errors.Join(err, in.end.Record(x.stream))
		in.whole = err == nil
		r.Times.Encode += time.Since(before)
		i += in.replays
		turn, flight = turn+1, flight+1
		for k := range g.Params {
			params[k] += uint32(in.replays) * uint32(g.Params[k].Advance)
		}
		params[len(g.Params)] += uint32(in.replays)
	}
	land(0)
	failed := err != nil && !errors.Is(err, context.Cause(ctx))
	if failed {
		x.settle()
	}
	if launched > 0 {
		r.Times.End = time.Now()
		span := time.Duration(0)
		if !failed {
			span, _ = own.slots[(turn-1)%len(own.slots)].end.Since(x.begin)
		}
		r.Times.Begin = r.Times.End.Add(-span)
		r.Times.Fit(timed)
	}
	if failed {
		err = fmt.Errorf("cuda: %w", err)
	}
	return err
}

// settle waits after a failure for all work of the stream: the event behind it may not have been recorded, and its
// memory is freed soon. An error here adds nothing to the first one.
func (x *executor) settle() { _ = x.stream.Synchronize() }

// addresses returns the device addresses of places, by memory.
func (x *executor) addresses(places []backend.Place) []driver.Address {
	out := make([]driver.Address, len(places))
	for i, p := range places {
		if b, ok := p.Buffer.(*buffer); ok {
			out[i] = b.at + driver.Address(p.Offset)
		}
	}
	return out
}

// window is how many steps of a replay are launched between two checks whether its context has ended. There the host
// also waits, so that no more than two windows are in flight.
const window = 256

// start launches the steps of a replay one by one.
func (x *executor) start(ctx context.Context, l *launches, next bool) error {
	if err := l.follow(x.stream); err != nil {
		return err
	}
	t := x.teller(l.code)
	defer t.end()
	for n := range l.steps {
		t.at(n)
		if n%window == 0 && n > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			turn := n / window
			if turn > 1 {
				if err := x.windows[turn%2].Synchronize(); err != nil {
					return err
				}
			}
			if err := x.windows[turn%2].Record(x.stream); err != nil {
				return err
			}
		}
		if err := l.one(ctx, n, x.stream, next); err != nil {
			return err
		}
	}
	t.at(len(l.steps))
	return nil
}

// follow launches the kernels that evaluate rules.
func (l *launches) follow(s driver.Stream) error {
	for i := range l.first {
		if err := l.first[i].Start(s); err != nil {
			return err
		}
	}
	return nil
}

// one launches a step, if the replay has it and its grid is not empty.
func (l *launches) one(ctx context.Context, n int, s driver.Stream, next bool) error {
	k := &l.steps[n]
	if k.next && !next {
		return nil
	}
	if k.counts >= 0 {
		if err := l.counted(n, s); err != nil {
			return err
		}
	}
	if empty(&l.list[n]) {
		return nil
	}
	if err := l.list[n].Start(s); err != nil {
		return fmt.Errorf("%s: %w", l.describe(k.node), err)
	}
	return nil
}

// counted sets the grid of a step from device memory, which the host reads when all work before has ended.
func (l *launches) counted(n int, s driver.Stream) error {
	k := &l.steps[n]
	o := &l.Ops[k.counts]
	var words [12]byte
	if err := s.Synchronize(); err != nil {
		return err
	}
	t, err := newStaging()
	if err != nil {
		return err
	}
	err = errors.Join(t.fetch(words[:], l.places[o.Index]+driver.Address(l.offset(k.counts, l.params))), t.close())
	if err != nil {
		return err
	}
	most := l.Grids[l.Ops[k.dispatch].Index].Size
	var size [3]uint64
	for i := range size {
		size[i] = uint64(binary.LittleEndian.Uint32(words[4*i:]))
		if size[i] > most[i] {
			return fmt.Errorf("%s: takes its grid from memory, where %d threadgroups stand in dimension %d: the graph says at most %d",
				l.describe(k.node), size[i], i, most[i])
		}
	}
	return l.size(n, size)
}

// timed launches the steps of a replay with events between, and waits for their times.
func (x *executor) timed(l *launches, r *backend.Result, next bool) (err error) {
	events := make([]driver.Event, len(l.steps)+1)
	defer func() {
		for _, e := range events {
			if e != 0 {
				err = errors.Join(err, e.Destroy())
			}
		}
	}()
	for i := range events {
		if events[i], err = driver.NewEvent(true); err != nil {
			return err
		}
	}
	if err := errors.Join(l.follow(x.stream), events[0].Record(x.stream)); err != nil {
		return err
	}
	for n := range l.steps {
		if err := errors.Join(l.one(context.Background(), n, x.stream, next), events[n+1].Record(x.stream)); err != nil {
			return err
		}
	}
	if err := events[len(l.steps)].Synchronize(); err != nil {
		return err
	}
	now := time.Now()
	for n := range l.steps {
		c, ok := l.nodes[l.steps[n].node].(ir.Command)
		if _, carry := c.(*ir.Carry); !ok || carry || empty(&l.list[n]) {
			continue
		}
		var span, rest time.Duration
		span, err = events[n+1].Since(events[n])
		if err == nil {
			rest, err = events[len(l.steps)].Since(events[n+1])
		}
		if err != nil {
			return err
		}
		end := now.Add(-rest)
		r.Times.Commands = append(r.Times.Commands, backend.TimeOf(c, end.Add(-span), end))
	}
	return nil
}
