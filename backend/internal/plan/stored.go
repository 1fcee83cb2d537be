package plan

// Stored is a plan whose dispatches stand in indirect command buffers: they are encoded once, and a
// replay executes them by ranges. Each of them sets all that it needs ([Options.Whole]).
type Stored struct {
	*Plan
	Commands []Command
	Steps    []Step
	Ranges   []Range // by Plan.Buffers: their steps

	// Buffers and Threadgroups are how many slots a command has at most: one more than the last.
	Buffers, Threadgroups int
	// Words are the bytes of all SetBytes: what does not depend on params, and room for what does.
	Words []byte
	// Word is where in Words the bytes of an operation lie, by Plan.Ops; −1 of others.
	Word []int32
}

// Command is a dispatch of an indirect command buffer: the operations First to Dispatch.
type Command struct {
	First, Dispatch int32
	// Barrier: it waits for what comes before it in the range that is executed.
	Barrier bool
}

// Range is from First to End, without it.
type Range struct{ First, End int32 }

// StepKind says what an encoder does in a step.
type StepKind uint8

// The kinds of steps.
const (
	Execute StepKind = iota // commands First to End
	Emit                    // the operations First to End, as they are
)

// Step is a part of a replay.
type Step struct {
	Kind StepKind
	// Next: only if another replay of the submission follows (ir.Carry).
	Next bool
	Range
}

// WordAlign is the alignment of each operation's bytes in Words.
const WordAlign = 32

// Store turns a plan into commands, at most most in one indirect command buffer; no step has commands of two
// buffers. With barriers, these become parts of commands where that is possible.
func Store(p *Plan, most int, barriers bool) *Stored {
	s := &Stored{Plan: p, Word: make([]int32, len(p.Ops))}
	for i := range s.Word {
		s.Word[i] = -1
	}
	x := storing{Stored: s, most: most, constant: map[string]int32{}}
	x.inside.wanted = barriers
	for i := range p.Buffers {
		first := int32(len(s.Steps))
		x.buffer(&p.Buffers[i])
		s.Ranges = append(s.Ranges, Range{first, int32(len(s.Steps))})
	}
	// A kernel may read more than its argument has, up to the argument's size in its source.
	s.Words = append(s.Words, make([]byte, 256)...)
	return s
}

type storing struct {
	*Stored
	most     int
	inside   inside
	constant map[string]int32 // offsets in Words of bytes that do not depend on params
	vars     int              // of Plan.Vars: the first that was not seen
	open     bool             // the last step executes commands, and the next could join them
}

// buffer stores a command buffer.
func (x *storing) buffer(b *Buffer) {
	x.open, x.inside.open = false, false
	set := b.First // the first operation of what is set for the next dispatch
	for i := b.First; i < b.End; i++ {
		switch o := &x.Ops[i]; o.Kind {
		case Dispatch:
			if x.guards(set, i) {
				continue // it goes with the dispatch that it guards
			}
			x.command(set, i)
			set = i + 1
		case DispatchIndirect:
			x.emit(set, i+1, o.Next)
			set = i + 1
		case Push, Pop:
			x.emit(i, i+1, false)
			set = i + 1
		}
	}
}

// guards reports whether a dispatch is that of a guard.
func (x *storing) guards(set, dispatch int32) bool {
	for i := set; i < dispatch; i++ {
		if o := &x.Ops[i]; o.Kind == SetPipeline {
			return x.Pipelines[o.Index].Source == Guard
		}
	}
	return false
}

// leave ends the last step's range: commands before the barrier that one of them has inside may still run.
func (x *storing) leave() {
	if op, needed := x.inside.leave(); needed {
		x.emit(op, op+1, false)
	}
}

// emit appends a step that gives operations to the encoder as they are.
func (x *storing) emit(first, end int32, next bool) {
	for i := first; i < end && x.Ops[i].Kind != Dispatch; i++ {
		x.inside.open = x.inside.open && x.Ops[i].Kind != Barrier
	}
	x.leave()
	for i := first; i < end; i++ {
		if o := &x.Ops[i]; o.Kind == SetBytes {
			x.Word[i] = x.word(i, o)
		}
	}
	x.Steps = append(x.Steps, Step{Emit, next, Range{first, end}})
	x.open = false
}

// command stores a dispatch.
func (x *storing) command(set, dispatch int32) {
	n := int32(len(x.Commands))
	c := Command{First: set, Dispatch: dispatch}
	barrier := int32(-1)
	for i := set; i < dispatch; i++ {
		o := &x.Ops[i]
		switch o.Kind {
		case SetBuffer, SetBytes:
			x.Stored.Buffers = max(x.Stored.Buffers, int(o.Slot)+1)
			if o.Kind == SetBytes {
				x.Word[i] = x.word(i, o)
			}
		case SetThreadgroupMemory:
			x.Threadgroups = max(x.Threadgroups, int(o.Slot)+1)
		case Barrier:
			barrier = i
		}
	}
	next := x.Ops[dispatch].Next
	c.Barrier = x.inside.takes(barrier, !next && !x.seek(dispatch))
	if barrier >= 0 && !c.Barrier {
		x.emit(barrier, barrier+1, false)
	}
	x.Commands = append(x.Commands, c)
	if k := len(x.Steps) - 1; x.open && x.Steps[k].Next == next && int(n)%x.most != 0 {
		x.Steps[k].End++
		if c.Barrier {
			x.inside.joined(barrier)
		}
		return
	}
	if c.Barrier {
		x.Commands[n].Barrier = false
		x.emit(barrier, barrier+1, false)
	}
	x.leave()
	x.Steps = append(x.Steps, Step{Execute, next, Range{n, n + 1}})
	x.open = true
}

// seek moves on to the vars of an operation, and reports whether it has any. It is called for operations in their
// order.
func (x *storing) seek(op int32) bool {
	for x.vars < len(x.Vars) && x.Vars[x.vars].Op < op {
		x.vars++
	}
	return x.vars < len(x.Vars) && x.Vars[x.vars].Op == op
}

// word returns the offset in Words of an operation's bytes.
func (x *storing) word(i int32, o *Op) int32 {
	if x.seek(i) {
		return x.place(x.Data[o.Off : o.Off+o.Len])
	}
	data := string(x.Data[o.Off : o.Off+o.Len])
	at, ok := x.constant[data]
	if !ok {
		at = x.place([]byte(data))
		x.constant[data] = at
	}
	return at
}

func (x *storing) place(data []byte) int32 {
	at := (len(x.Words) + WordAlign - 1) &^ (WordAlign - 1)
	x.Words = append(x.Words, make([]byte, at-len(x.Words))...)
	x.Words = append(x.Words, data...)
	return int32(at)
}
