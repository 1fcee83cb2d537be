//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// Results (CUresult).
const (
	success          = 0
	invalidValue     = 1
	outOfMemory      = 2
	notInitialized   = 3
	deinitialized    = 4
	invalidDevice    = 101
	invalidContext   = 201
	invalidPTX       = 218
	invalidHandle    = 400
	notFound         = 500
	notReady         = 600
	illegalAddress   = 700
	contextDestroyed = 709
	misaligned       = 716
	launchFailed     = 719
)

// lost reports whether a result means that the context is lost.
func lost(code uint32) bool {
	switch code {
	case illegalAddress, 702, 714, 715, misaligned, 717, 718, launchFailed:
		return true
	}
	return false
}

// method is a function of the driver.
type method struct {
	name string
	args int
	call func(g *GPU, a []uintptr) uint32
	kind kind
}

// kind says what a function requires, and what it does when it is made to fail or the context is lost.
type kind uint8

const (
	free     kind = iota // requires nothing
	ready                // requires cuInit
	releases             // the same; releases the context also when it is made to fail
	inside               // requires a current context on the thread
	destroys             // the same; destroys its object also when it fails
)

var table = map[string]*method{}

func register(k kind, name string, args int, call func(g *GPU, a []uintptr) uint32) {
	table[name] = &method{name: name, args: args, call: call, kind: k}
}

// registerOn registers a function whose argument i is the handle of a T.
func registerOn[T any](k kind, name string, args, i int, call func(g *GPU, o *T, a []uintptr) uint32) {
	register(k, name, args, func(g *GPU, a []uintptr) uint32 {
		if o := object[T](g, a[i]); o != nil {
			return call(g, o, a)
		}
		return invalidHandle
	})
}

// registerDestroy registers a function that destroys the T whose handle it is given.
func registerDestroy[T any](name string, destroy func(g *GPU, o *T)) {
	registerOn(destroys, name, 1, 0, func(g *GPU, o *T, a []uintptr) uint32 {
		destroy(g, o)
		g.drop(a[0], o)
		return success
	})
}

// answering is the GPU that calls go to; nil: none.
var answering atomic.Pointer[GPU]

var addresses struct {
	sync.Mutex
	by map[string]uintptr
}

// address returns the address of a function of the table, as C calls it; 0: none has the name. A function is made
// once in a process, as purego's callbacks are never freed.
func address(name string) uintptr {
	addresses.Lock()
	defer addresses.Unlock()
	if at := addresses.by[name]; at != 0 {
		return at
	}
	m := table[name]
	if m == nil {
		return 0
	}
	word := reflect.TypeFor[uintptr]()
	in := make([]reflect.Type, m.args)
	for i := range in {
		in[i] = word
	}
	f := reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{word}, false), func(args []reflect.Value) []reflect.Value {
		var a [12]uintptr
		for i, v := range args {
			a[i] = uintptr(v.Uint())
		}
		code := uint32(deinitialized)
		if g := answering.Load(); g != nil {
			code = g.enter(m, a[:len(args)])
		}
		return []reflect.Value{reflect.ValueOf(uintptr(code))}
	})
	if addresses.by == nil {
		addresses.by = map[string]uintptr{}
	}
	addresses.by[name] = purego.NewCallback(f.Interface())
	return addresses.by[name]
}

// enter handles a call of a function: it counts the call, injects faults, and answers.
func (g *GPU) enter(m *method, a []uintptr) uint32 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[m.name]++
	n := g.calls[m.name]
	for _, f := range g.options.Faults {
		if f.On != m.name || f.Nth != n {
			continue
		}
		if lost(f.Code) && g.sticky == 0 {
			g.lose(f.Code)
		}
		if m.kind == destroys || m.kind == releases { // so that the injected failure makes no leak
			m.call(g, a)
		}
		return f.Code
	}
	if x := g.options.Misheard; x.On == m.name && x.Nth == n {
		switch x.How {
		case Unheard:
			return success
		case Twice:
			if code := g.answer(m, a); code != success {
				return code
			}
		case Changed:
			a[x.Arg] += x.By
		}
	}
	return g.answer(m, a)
}

func (g *GPU) answer(m *method, a []uintptr) uint32 {
	if m.kind >= ready && !g.ready {
		g.note("%s is called before cuInit", m.name)
		return notInitialized
	}
	if m.kind >= inside {
		switch at := g.current[unix.Gettid()]; {
		case at == 0:
			g.note("%s is called on a thread without a context", m.name)
			return invalidContext
		case at != g.context:
			g.note("%s is called in a context that was released", m.name)
			return contextDestroyed
		}
	}
	if g.sticky != 0 && m.kind >= inside {
		if m.kind == destroys {
			m.call(g, a)
		}
		return g.sticky
	}
	code := m.call(g, a)
	switch {
	case m.kind == free:
	case code == invalidValue, code == invalidHandle, code == invalidDevice:
		g.note("%s: the arguments are not valid: %x", m.name, a)
	}
	return code
}

// at returns the caller's memory at the address p.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// list returns the n values in the caller's memory at the address p.
func list[T any](p, n uintptr) []T { return unsafe.Slice(at[T](p), n) }

// text returns the caller's NUL-terminated string at the address p; "" if it has most bytes or more.
func text(p uintptr, most int) string {
	b := unsafe.Slice(at[byte](p), most)
	for n := range b {
		if b[n] == 0 {
			return string(b[:n])
		}
	}
	return ""
}

// give stores a result at the address p, an argument of the caller's.
func give[T any](p uintptr, v T) uint32 {
	if p == 0 {
		return invalidValue
	}
	*at[T](p) = v
	return success
}
