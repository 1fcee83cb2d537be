package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	maxSlots = 31 // of a dispatch
	// maxBuffer bounds the size of a buffer in bytes, so that sums of offsets do not overflow.
	maxBuffer = 1 << 48
)

// library is the code of kernels.
type library struct {
	id   uint64
	kind string // "source" or "metallib"
	name string
	code []byte // of a source with its macros
	fast bool   // compiled with fast math
}

// pipeline is a function with its constants.
type pipeline struct {
	id        uint64
	library   *library
	function  string
	constants []constant
	label     string
	offset    int // of its event
}

type constant struct {
	index, typ uint32
	bits       uint64
}

// piece is what is known that a buffer holds: data at an offset or, if that is nil, n times a value.
type piece struct {
	offset, n int64
	data      []byte
	value     byte
}

// buffer is memory of the device. Parts of a buffer have no contents of their own.
type buffer struct {
	id        uint64
	size      int64
	private   bool
	untracked bool
	label     string
	name      string
	role      string
	parent    *buffer
	at        int64 // in the parent
	freed     bool
	host      []hostWrite // what the host has written, in order
	used      int         // the last step that becomes a run and uses it
}

// hostWrite is what the host has written before a step, which is given by its index.
type hostWrite struct {
	before int
	holds  bool // it is what the buffer holds, whoever wrote it
	piece
}

// root returns the buffer that b is a part of, and where.
func (b *buffer) root() (*buffer, int64) {
	at := int64(0)
	for b.parent != nil {
		b, at = b.parent, at+b.at
	}
	return b, at
}

// binding is what a dispatch has at a slot.
type binding struct {
	slot   int
	buffer *buffer // nil: data
	offset int64
	data   []byte
	part   int   // of the step: the life of the buffer
	limit  int64 // so many bytes behind the offset are the value that is there, as far as it is believed that no more is touched; 0: not known
}

type memory struct {
	slot  int
	bytes int64
}

// hint is what somebody who knows says that a dispatch touches.
type hint struct {
	slot          int
	offset, bytes int64
	write, must   bool
}

type commandKind uint8

const (
	dispatch commandKind = iota
	copying
	filling
	barrier
	push
	pop
)

// command is one command of a step.
type command struct {
	kind    commandKind
	offset  int // of its event in the log
	label   string
	binds   []binding // of a copy: from, to; of a fill: to
	bytes   int64     // of a copy or fill
	value   byte      // of a fill
	code    *pipeline
	memory  []memory
	hints   []hint
	threads bool
	grid    [3]int64
	group   [3]int64
}

// commandBuffer holds commands until it is committed.
type commandBuffer struct {
	id        uint64
	queue     uint64
	encoders  []*encoder
	enqueued  bool
	committed bool
}

type encoder struct {
	id         uint64
	of         *commandBuffer
	blit       bool
	concurrent bool
	ended      bool
	code       *pipeline
	slots      [maxSlots]binding
	bound      uint32 // bits of slots
	memory     [maxSlots]int64
	hints      []hint
	commands   []command
	updates    []uint64 // fences
	waits      bool
	tracked    bool // it uses a buffer whose hazards Metal tracks
	groups     int
}

// step is what was committed between two marks, or between two waits of the host.
type step struct {
	name     string
	marked   bool
	params   []param
	commands []command
	offset   int
	last     *encoder // the last encoder of it, for barriers
	uses     map[*buffer]bool
}

type param struct {
	name  string
	value uint64
}

// world follows the events of a log.
type world struct {
	log       *Log
	libraries map[uint64]*library
	pipelines map[uint64]*pipeline
	buffers   map[uint64]*buffer
	commands  map[uint64]*commandBuffer
	encoders  map[uint64]*encoder
	queues    map[uint64][]*commandBuffer // enqueued, not yet flushed
	steps     []*step
	open      *step // takes what is committed; nil: the next commit begins one
	program   string
	unknown   []string
	marked    bool // some step is
	names     map[string]*buffer
	codes     map[string]*library  // by what they are
	functions map[string]*pipeline // likewise
	signalled map[uint64]uint64    // the greatest value of each event
	waits     bool                 // the program waits by messages somewhere
	last      uint64               // the command buffer that was committed last
}

// follow reads a whole log.
func follow(ctx context.Context, l *Log) (*world, error) {
	w := &world{
		log: l, libraries: map[uint64]*library{}, pipelines: map[uint64]*pipeline{}, buffers: map[uint64]*buffer{},
		commands: map[uint64]*commandBuffer{}, encoders: map[uint64]*encoder{}, queues: map[uint64][]*commandBuffer{},
		codes: map[string]*library{}, functions: map[string]*pipeline{}, signalled: map[uint64]uint64{},
	}
	n := 0
	err := l.each(func(r *record) error {
		w.waits = w.waits || r.kind == Wait
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = l.each(func(r *record) error {
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return w.event(r)
	})
	return w, err
}

// event takes one event.
func (w *world) event(r *record) error {
	fault := func(format string, args ...any) error {
		return w.log.fault(r.offset, "event %s: %s", Events[r.kind].Name, fmt.Sprintf(format, args...))
	}
	switch r.kind {
	case Program:
		w.program = r.s(0)
	case Library:
		if w.libraries[r.n(0)] != nil || r.n(0) == 0 {
			return fault("number %d is 0 or taken", r.n(0))
		}
		if k := r.s(1); k != "source" && k != "metallib" {
			return fault("kind is %.20q, want source or metallib", k)
		}
		l := &library{id: r.n(0), kind: r.s(1), name: printable(r.s(2)), code: r.b(3)}
		var macros []byte
		for line := range strings.Lines(r.s(4)) {
			switch line = strings.TrimSpace(line); {
			case strings.HasPrefix(line, "-D"):
				name, value, given := strings.Cut(line[2:], "=")
				if !given {
					value = "1"
				}
				macros = fmt.Appendf(macros, "#define %s %s\n", name, value)
			case line == "fast-math":
				l.fast = true
			case line != "":
				return fault("option %.40q, want -DNAME=VALUE or fast-math", line)
			}
		}
		if len(macros) > 0 {
			l.code = slices.Concat(macros, []byte("#line 1\n"), l.code)
		}
		same := fmt.Sprintf("%s %v %x", l.kind, l.fast, sha256.Sum256(l.code))
		if w.codes[same] == nil {
			w.codes[same] = l
		}
		w.libraries[l.id] = w.codes[same] // a program may make one again and again
	case Pipeline:
		p := &pipeline{id: r.n(0), library: w.libraries[r.n(1)], function: r.s(2), label: r.s(4), offset: r.offset}
		switch raw := r.b(3); {
		case w.pipelines[p.id] != nil || p.id == 0:
			return fault("number %d is 0 or taken", p.id)
		case p.library == nil:
			return fault("there is no library %d", r.n(1))
		case len(raw)%16 != 0 || len(raw) > 16*256:
			return fault("the function constants have %d bytes, want 16 for each, at most 256", len(raw))
		default:
			for c := range slices.Chunk(raw, 16) {
				p.constants = append(p.constants, constant{binary.LittleEndian.Uint32(c), binary.LittleEndian.Uint32(c[4:]), binary.LittleEndian.Uint64(c[8:])})
			}
			slices.SortStableFunc(p.constants, func(a, b constant) int { return int(a.index) - int(b.index) })
		}
		same := fmt.Sprintf("%d %q %v", p.library.id, p.function, p.constants)
		if w.functions[same] == nil {
			w.functions[same] = p
		}
		w.pipelines[p.id] = w.functions[same]
	case Buffer:
		b := &buffer{id: r.n(0), size: int64(r.n(1)), private: r.n(2) == 2, untracked: r.n(3) != 0, label: r.s(4)}
		if w.buffers[b.id] != nil || b.id == 0 {
			return fault("number %d is 0 or taken", b.id)
		}
		if r.n(1) > maxBuffer || r.n(1) == 0 {
			return fault("%d bytes, want 1 to %d", r.n(1), int64(maxBuffer))
		}
		if r.n(5) != 0 {
			b.parent, b.at = w.buffers[r.n(5)], int64(r.n(6))
			if b.parent == nil || b.parent.freed || r.n(6) > maxBuffer || b.at+b.size > b.parent.size || b.parent.depth() > 8 {
				return fault("bytes %d to %d are not in a buffer %d, or that is a part of a part too often", b.at, b.at+b.size, r.n(5))
			}
		}
		w.buffers[b.id] = b
	case Free:
		b, err := w.buffer(r, 0)
		if err != nil {
			return err
		}
		b.freed = true
	case Contents, Zeros, Holds:
		b, err := w.buffer(r, 0)
		if err != nil {
			return err
		}
		n, data := r.n(2), []byte(nil)
		if r.kind != Zeros {
			data = r.b(2)
			n = uint64(len(data))
		}
		if r.n(1) > uint64(b.size) || n > uint64(b.size)-r.n(1) {
			return fault("bytes %d to %d of a buffer of %d", r.n(1), r.n(1)+n, b.size)
		}
		root, at := b.root()
		if r.kind != Holds && w.open != nil && w.open.uses[root] {
			w.note("the host writes buffers while a step is under way: that counts as done before the step")
		}
		root.host = append(root.host, hostWrite{w.next(), r.kind == Holds, piece{at + int64(r.n(1)), int64(n), data, 0}})
	case Name:
		b, err := w.buffer(r, 0)
		if err != nil {
			return err
		}
		switch r.s(2) {
		case "", "weight", "input", "output", "state", "scratch":
		default:
			return fault("role is %.20q, want weight, input, output, state or scratch", r.s(2))
		}
		b.name, b.role = r.s(1), r.s(2)
	case Step:
		w.open = nil
		if r.s(0) != "" {
			w.open = &step{name: r.s(0), marked: true, offset: r.offset}
			w.steps = append(w.steps, w.open)
			w.marked = true
		}
	case Param:
		if r.n(1) > math.MaxUint32 || r.s(0) == "" {
			return fault("%.40q is %d, want a name and at most %d", r.s(0), r.n(1), uint32(math.MaxUint32))
		}
		if w.open == nil || !w.open.marked {
			return fault("no step is open")
		}
		w.open.params = append(w.open.params, param{r.s(0), r.n(1)})
	case Commands:
		if w.commands[r.n(0)] != nil || r.n(0) == 0 {
			return fault("number %d is 0 or taken", r.n(0))
		}
		w.commands[r.n(0)] = &commandBuffer{id: r.n(0), queue: r.n(1)}
	case Enqueue, Commit:
		c := w.commands[r.n(0)]
		if c == nil || c.committed {
			return fault("there is no command buffer %d, or it was committed", r.n(0))
		}
		if !c.enqueued {
			c.enqueued = true
			w.queues[c.queue] = append(w.queues[c.queue], c)
		}
		if r.kind == Commit {
			c.committed, w.last = true, c.id
			w.flush(c.queue, r.offset)
		}
	case Wait:
		if w.open != nil && !w.open.marked {
			w.open = nil // the host may read results now and choose by them what it does next: that is another step
		}
	case Ended:
		// A program that never waits by a message is told here that what it has committed has ended. Of programs that do, which are
		// told at any time, this says nothing.
		w.told(r.n(0))
	case Signal: // command buffers come in the order of their commits, so that nothing has to wait
		w.signalled[r.n(1)] = max(w.signalled[r.n(1)], r.n(2))
	case Await:
		if w.signalled[r.n(1)] < r.n(2) {
			w.note("a command buffer waits for an event that none before it signals: the order of command buffers is that of their commits")
		}
	case Encoder:
		c := w.commands[r.n(1)]
		if c == nil || c.committed || w.encoders[r.n(0)] != nil || r.n(0) == 0 {
			return fault("there is no open command buffer %d, or number %d is taken", r.n(1), r.n(0))
		}
		if k := r.s(2); k != "compute" && k != "blit" {
			return fault("kind is %.20q, want compute or blit", k)
		}
		e := &encoder{id: r.n(0), of: c, blit: r.s(2) == "blit", concurrent: r.n(3) != 0}
		c.encoders = append(c.encoders, e)
		w.encoders[e.id] = e
	case Unknown:
		w.note(printable(r.s(0)))
	default:
		e := w.encoders[r.n(0)]
		if e == nil || e.ended {
			return fault("there is no open encoder %d", r.n(0))
		}
		return w.encode(e, r, fault)
	}
	return nil
}

// told ends the step that is open if the command buffer that has ended is the last one of it, and the program has no other way to wait.
func (w *world) told(id uint64) {
	if !w.waits && w.open != nil && !w.open.marked && id == w.last {
		w.open = nil
	}
}

// note keeps what a log cannot say, once.
func (w *world) note(what string) {
	if len(w.unknown) < 16 && !slices.Contains(w.unknown, what) {
		w.unknown = append(w.unknown, what)
	}
}

// depth is how many buffers b is a part of.
func (b *buffer) depth() (n int) {
	for ; b.parent != nil; b = b.parent {
		n++
	}
	return n
}

// next returns the index of the step that takes the next commit.
func (w *world) next() int {
	if w.open != nil {
		return len(w.steps) - 1
	}
	return len(w.steps)
}

// buffer returns the buffer whose number is field i.
func (w *world) buffer(r *record, i int) (*buffer, error) {
	b := w.buffers[r.n(i)]
	if b == nil || b.freed {
		return nil, w.log.fault(r.offset, "event %s: there is no buffer %d, or it was freed", Events[r.kind].Name, r.n(i))
	}
	return b, nil
}

// encode takes an event of an encoder.
func (w *world) encode(e *encoder, r *record, fault func(string, ...any) error) error {
	slot := int(min(r.n(1), maxSlots))
	switch r.kind {
	case Bind, Bytes, Threadgroup, Reads, Writes:
		if slot == maxSlots {
			return fault("slot %d, want 0 to %d", r.n(1), maxSlots-1)
		}
	}
	inside := func(b *buffer, offset, n uint64) bool { return offset <= uint64(b.size) && n <= uint64(b.size)-offset }
	add := func(c command) {
		c.offset = r.offset
		e.commands = append(e.commands, c)
	}
	switch r.kind {
	case End:
		e.ended = true
	case Use:
		if e.code = w.pipelines[r.n(1)]; e.code == nil {
			return fault("there is no pipeline %d", r.n(1))
		}
	case Bind:
		e.bound &^= 1 << slot
		if r.n(2) == 0 {
			return nil
		}
		b, err := w.buffer(r, 2)
		if err != nil {
			return err
		}
		if r.n(3) >= uint64(b.size) {
			return fault("offset %d of a buffer of %d", r.n(3), b.size)
		}
		e.slots[slot] = binding{slot: slot, buffer: b, offset: int64(r.n(3))}
		e.bound |= 1 << slot
		e.tracked = e.tracked || !b.untracked
	case Bytes:
		if n := len(r.b(2)); n == 0 || n > 4096 {
			return fault("%d bytes, want 1 to 4096", n)
		}
		e.slots[slot] = binding{slot: slot, data: r.b(2)}
		e.bound |= 1 << slot
	case Threadgroup:
		if r.n(2) > 1<<20 {
			return fault("%d bytes of threadgroup memory", r.n(2))
		}
		e.memory[slot] = int64(r.n(2))
	case Reads, Writes:
		if r.n(2) > maxBuffer || r.n(3) > maxBuffer || len(e.hints) >= 256 {
			return fault("%d bytes from %d on, or more than 256 hints", r.n(3), r.n(2))
		}
		e.hints = append(e.hints, hint{slot, int64(r.n(2)), int64(r.n(3)), r.kind == Writes, r.kind == Writes && r.n(4) != 0})
	case Dispatch:
		c := command{kind: dispatch, code: e.code, threads: r.n(1) != 0, label: r.s(8), hints: e.hints}
		e.hints = nil
		for i := range 3 {
			if r.n(2+i) > math.MaxUint32 || r.n(5+i) > 1024 {
				return fault("the grid is %v in threadgroups of %v", r.numbers[2:5], r.numbers[5:8])
			}
			c.grid[i], c.group[i] = int64(r.n(2+i)), int64(r.n(5+i))
		}
		if e.code == nil || e.blit {
			return fault("no pipeline is set, or the encoder is for copies")
		}
		for i := range maxSlots {
			if e.bound&(1<<i) != 0 {
				c.binds = append(c.binds, e.slots[i])
			}
			if e.memory[i] > 0 {
				c.memory = append(c.memory, memory{i, e.memory[i]})
			}
		}
		add(c)
		if !e.concurrent {
			add(command{kind: barrier})
		}
	case Barrier:
		add(command{kind: barrier})
	case FenceUpdate:
		e.updates = append(e.updates, r.n(1))
	case FenceWait:
		e.waits = true
	case Copy:
		from, err := w.buffer(r, 1)
		if err != nil {
			return err
		}
		to, err := w.buffer(r, 3)
		if err != nil {
			return err
		}
		if !inside(from, r.n(2), r.n(5)) || !inside(to, r.n(4), r.n(5)) || r.n(5) == 0 {
			return fault("%d bytes from %d on of a buffer of %d, to %d of one of %d", r.n(5), r.n(2), from.size, r.n(4), to.size)
		}
		e.tracked = e.tracked || !from.untracked || !to.untracked
		add(command{kind: copying, bytes: int64(r.n(5)), binds: []binding{{buffer: from, offset: int64(r.n(2))}, {buffer: to, offset: int64(r.n(4))}}})
		add(command{kind: barrier})
	case Fill:
		to, err := w.buffer(r, 1)
		if err != nil {
			return err
		}
		if !inside(to, r.n(2), r.n(3)) || r.n(3) == 0 || r.n(4) > 255 {
			return fault("%d bytes from %d on of a buffer of %d, with %d", r.n(3), r.n(2), to.size, r.n(4))
		}
		e.tracked = e.tracked || !to.untracked
		add(command{kind: filling, bytes: int64(r.n(3)), value: byte(r.n(4)), binds: []binding{{buffer: to, offset: int64(r.n(2))}}})
		add(command{kind: barrier})
	case Push:
		e.groups++
		add(command{kind: push, label: r.s(1)})
	case Pop:
		if e.groups == 0 {
			return fault("no group is open")
		}
		e.groups--
		add(command{kind: pop})
	default:
		return fault("is of no encoder")
	}
	return nil
}

// flush takes the committed command buffers at the head of a queue into the step that is open.
func (w *world) flush(queue uint64, offset int) {
	waiting := w.queues[queue]
	for len(waiting) > 0 && waiting[0].committed {
		w.take(waiting[0], offset)
		waiting = waiting[1:]
	}
	w.queues[queue] = waiting
}

// take takes the commands of a command buffer.
func (w *world) take(c *commandBuffer, offset int) {
	s := w.open
	if s == nil {
		s = &step{offset: offset}
		w.steps = append(w.steps, s)
		w.open = s
	}
	for _, e := range c.encoders {
		// Metal orders encoders by the hazards of the buffers that it tracks, a program the others by fences.
		if s.last != nil && len(e.commands) > 0 && (e.waits || e.tracked || s.last.tracked) {
			s.commands = append(s.commands, command{kind: barrier, offset: offset})
		}
		for range e.groups {
			e.commands = append(e.commands, command{kind: pop, offset: offset})
		}
		if len(e.commands) > 0 {
			s.last = e
		}
		if s.uses == nil {
			s.uses = map[*buffer]bool{}
		}
		for i := range e.commands {
			for n := range e.commands[i].binds {
				if x := &e.commands[i].binds[n]; x.buffer != nil {
					root, _ := x.buffer.root()
					s.uses[root] = true
				}
			}
		}
		s.commands = append(s.commands, e.commands...)
		e.ended = true
		delete(w.encoders, e.id)
		e.commands = nil
	}
	c.encoders = nil
	delete(w.commands, c.id)
}
