package chat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// These bounds hold whatever the options say. The longest published templates have some
// 30 KB.
const (
	maxTemplate = 256 << 10 // bytes
	maxOutput   = 16 << 20  // bytes
	maxRange    = 100_000   // elements, as in Jinja's sandbox
	maxDepth    = 100       // nesting of brackets, blocks, macro calls and values
	maxNesting  = 200       // nesting of expressions
	maxFrames   = 4000      // depth of the evaluator's own recursion, because 100 macros with 100 nested blocks each would need too much stack
	maxReason   = 500       // bytes of an error's reason
)

// Limits bound what one rendering may use. A field that is zero or negative means its
// default.
type Limits struct {
	// Steps counts expressions and statements that are evaluated, and more for work on long
	// values, in proportion to their length. The default is 20 million.
	Steps int64
	// Bytes counts the bytes of all values that are ever made, not only of those in use. The
	// default is 256 MiB.
	Bytes int64
	// Time is how long the rendering may take. The default is 10 s.
	Time time.Duration
}

// ErrLimit is wrapped by the error of a rendering that would use more than its limits.
var ErrLimit = errors.New("a limit of chat templates")

func (l Limits) orDefaults() Limits {
	if l.Steps <= 0 {
		l.Steps = 20_000_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 256 << 20
	}
	if l.Time <= 0 {
		l.Time = 10 * time.Second
	}
	return l
}

// budget is what is left of the limits. Everything is accounted for before it is done:
// one step for each node, and more in proportion for work on long values.
type budget struct {
	ctx    context.Context
	limits Limits
	end    time.Time
	steps  int64 // left
	bytes  int64 // left
	look   int64 // time and context are checked again when steps falls below this
}

// lookEvery is the number of steps between two checks of the time and the context.
const lookEvery = 4096

func newBudget(ctx context.Context, l Limits) budget {
	l = l.orDefaults()
	return budget{ctx: ctx, limits: l, end: time.Now().Add(l.Time), steps: l.Steps, bytes: l.Bytes, look: l.Steps - lookEvery}
}

// step accounts for n steps.
func (b *budget) step(n int) {
	b.steps -= int64(n)
	if b.steps < b.look {
		b.check()
	}
}

func (b *budget) check() {
	if err := b.ctx.Err(); err != nil {
		panic(&Error{Reason: "rendering was stopped: " + err.Error(), Err: err})
	}
	if b.steps < 0 {
		b.exceeded(fmt.Sprintf("it takes more than %d steps", b.limits.Steps))
	}
	if time.Now().After(b.end) {
		b.exceeded(fmt.Sprintf("it takes longer than %v", b.limits.Time))
	}
	b.look = b.steps - lookEvery
}

// alloc accounts for count things of size bytes before they are made.
func (b *budget) alloc(count, size int) {
	if count <= 0 || size <= 0 {
		return
	}
	if int64(count) > b.bytes/int64(size) {
		b.exceeded(fmt.Sprintf("its values take more than %d bytes", b.limits.Bytes))
	}
	n := count * size
	b.bytes -= int64(n)
	b.step(n / 64)
}

func (b *budget) exceeded(why string) {
	panic(&Error{Reason: why + ", which is not allowed for a chat template", Err: ErrLimit})
}

// sum returns a+b, or the largest int if that overflows.
func sum(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// Error says why a template failed and in which line of it.
type Error struct {
	Line   int    // from 1; 0 if no line is at fault
	Reason string // for raise_exception, the template's own words
	Err    error  // the cause if it was not the template (ErrLimit or a context's error), or nil
}

// Error formats as "chat: template line N: reason".
func (e *Error) Error() string {
	reason := e.Reason
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	if e.Line == 0 {
		return "chat: template: " + reason
	}
	return fmt.Sprintf("chat: template line %d: %s", e.Line, reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
