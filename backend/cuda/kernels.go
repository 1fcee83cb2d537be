//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/mlxc/mlxc/backend/internal/advance"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/internal/ptxcode"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/ptx"
	"github.com/mlxc/mlxc/ir"
)

// kernel is a Metal kernel, and what the driver has compiled of it.
type kernel struct {
	name    string
	mu      sync.Mutex
	kernel  *air.Kernel // nil: it was not found yet
	code    *ptxcode.Code
	values  uint32           // by bit: the slots whose constants entries take by value
	matrix  ptxmatrix.Kernel // other code for it on this GPU; nil: there is none
	entries map[variant]*entry
}

// variant is a form with what is known of its parameters, as a key ([code.specialise]); "": nothing.
type variant struct {
	form
	known string
}

// form is a way in which a kernel is compiled (nvptx.Launch).
type form struct {
	moving, values, waits bool
	mma                   nvptx.MMA
	fit                   ptxmatrix.Fit // of kernel.matrix, if not zero
	shares                bool          // launches before and behind are to share multiprocessors with its blocks
	ahead                 bool          // it triggers the next launch before it waits for those before (code.hurry)
}

// entry is a kernel compiled in one form, perhaps specialised for known parameters.
type entry struct {
	form
	known    []parameter // nil: none is
	aligned  uint64      // facts.aligned
	mu       sync.Mutex
	made     bool
	module   driver.Module
	function driver.Function
	static   int    // bytes of static shared memory
	threads  int    // maximum in a block
	more     uint32 // threads of a block beyond those of a threadgroup: those of the warm-up warp
	early    uint32 // by bit: the slots whose memory it may read before it waits
}

// isAligned reports whether an entry relies on a parameter being an aligned address.
func (e *entry) isAligned(parameter int) bool { return parameter < 64 && e.aligned>>parameter&1 != 0 }

// named returns the kernel that a key stands for.
func (d *Device) named(key, name string) *kernel {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.kernels[key]
	if x == nil {
		x = &kernel{name: name}
		d.kernels[key] = x
	}
	return x
}

// find returns the kernel of a pipeline. It is looked up once; a failed attempt is repeated by the next call.
func (d *Device) find(ctx context.Context, g *ir.Graph, p *plan.Pipeline) (*kernel, error) {
	if p.Source != plan.FromGraph {
		return d.ours(ctx, plan.MovesFile, plan.Moves, p.Entry())
	}
	k := &g.Kernels[p.Kernel]
	var id strings.Builder
	fmt.Fprintf(&id, "%d %q %x %q", k.Library.Kind, k.Library.Path, k.Library.Digest, k.Function)
	for _, c := range k.Constants {
		fmt.Fprintf(&id, " %d=%d", c.Index, c.Bits)
	}
	x := d.named(id.String(), k.Function)
	return x, x.found(func() (*ptxcode.Code, error) {
		code, err := d.code.Find(ctx, k)
		if err == nil && k.Library.Kind == ir.Builtin {
			x.matrix = ptxmatrix.Of(code.Kernel, k.Constants, d.matrix)
		}
		return code, err
	})
}

// ours returns a kernel of a Metal source that is part of this program.
func (d *Device) ours(ctx context.Context, file, source, name string) (*kernel, error) {
	x := d.named(file+" "+name, name)
	return x, x.found(func() (*ptxcode.Code, error) { return d.code.Own(ctx, file, source, name) })
}

func (x *kernel) found(find func() (*ptxcode.Code, error)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.kernel != nil {
		return nil
	}
	code, err := find()
	if err == nil {
		x.code, x.kernel = code, code.Kernel
		for i := range x.kernel.Args {
			if a := &x.kernel.Args[i]; a.ByValue() {
				x.values |= 1 << a.Index
			}
		}
	}
	return err
}

// entry returns a variant of a kernel that was found. key identifies what is known of its parameters.
func (x *kernel) entry(f form, key string, known []parameter) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	f.values = f.values || x.values == 0 // both forms are the same then
	if !x.multiplies() || f.fit.Fits() {
		f.mma = nvptx.NoMMA
	}
	v := variant{f, key}
	e := x.entries[v]
	if e == nil {
		if x.entries == nil {
			x.entries = map[variant]*entry{}
		}
		e = &entry{form: f, known: known, aligned: x.facts(known).aligned}
		if f.fit.Aligned {
			e.aligned |= x.wide()
		}
		x.entries[v] = e
	}
	return e
}

// load has the driver compile an entry of a kernel that was found, once. An attempt that failed is made
// again.
func (d *Device) load(ctx context.Context, x *kernel, e *entry) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.made {
		return nil
	}
	form := nvptx.Launch{Programmatic: e.waits, Moving: e.moving, Values: e.values, MMA: e.mma}
	if x.name == advance.Entry {
		form = nvptx.Launch{Values: true} // kernels behind it read its results before they wait
	}
	var text []byte
	var err error
	if e.fit.Fits() && !d.imaged {
		text = x.matrix.Emit(form, e.fit)
	} else if text, err = x.code.PTX(ctx, form); err != nil {
		return fmt.Errorf("kernel %s: %w", x.name, err)
	}
	if e.fit.Fits() && d.imaged {
		text = append(text, x.matrix.Note(e.fit)...)
	}
	early, err := nvptx.Early(text)
	if err != nil {
		return fmt.Errorf("kernel %s: %w", x.name, err)
	}
	if len(e.known) > 0 {
		if m, err := ptx.Parse(text); err == nil { // tests have images that are no PTX
			known := x.facts(e.known)
			specialised(m, e.known)
			folded(m, known)
			opaque(m, e.known)
			resident(m, known, d.Multiprocessors)
			if e.waits && warmedUp(m, known, d.Multiprocessors) {
				e.more = warmupThreads
			}
			text = m.Bytes()
		}
	}
	if e.ahead {
		text = hurried(text)
	}
	if d.disturb.text != nil {
		text = d.disturb.text(x.name, text)
	}
	began := time.Now()
	err = d.do(func() (err error) {
		if e.module, err = driver.LoadModule(text); err != nil {
			return err
		}
		defer func() {
			if err != nil { // another attempt loads it again
				err = errors.Join(err, e.module.Unload())
				e.module = 0
			}
		}()
		if e.function, err = e.module.Function(nvptx.Entry); err != nil {
			return err
		}
		if e.static, err = e.function.Attribute(driver.FunctionSharedBytes); err != nil {
			return err
		}
		if e.threads, err = e.function.Attribute(driver.FunctionMaxThreads); err != nil {
			return err
		}
		if e.shares { // multiprocessors that change how much memory is shared are idle in between
			if err := e.function.SetAttribute(driver.FunctionCarveout, 100); err != nil {
				return err
			}
		}
		if most := d.limits.optin - e.static; most > 0 {
			return e.function.SetAttribute(driver.FunctionDynamicShared, most)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("kernel %s: %w", x.name, err)
	}
	for _, i := range early {
		if a := &x.kernel.Args[i]; a.Attribute == "" && a.Space != air.Threadgroup {
			e.early |= 1 << a.Index
		}
	}
	e.made = true
	d.loaded(time.Since(began))
	return nil
}

// triggers matches where a kernel waits and lets the launch behind it begin.
var triggers = regexp.MustCompile(`(griddepcontrol\.wait;\s*)(griddepcontrol\.launch_dependents;\s*)`)

// hurried is a kernel's text that lets the launch behind it begin before it waits itself.
func hurried(text []byte) []byte { return triggers.ReplaceAll(text, []byte("$2$1")) }

// parallel calls do for numbers from 0 to n−1, several at a time.
func parallel(n int, do func(i int)) {
	var wait sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			do(i)
		})
	}
	wait.Wait()
}

// prepare finds the kernels of a plan, and returns the errors of those that are not found.
func (d *Device) prepare(ctx context.Context, p *plan.Plan) ([]*kernel, []error) {
	needed := make([]bool, len(p.Graph.Kernels))
	for i := range p.Pipelines {
		if x := &p.Pipelines[i]; x.Source == plan.FromGraph {
			needed[x.Kernel] = true
		}
	}
	d.code.Together(ctx, p.Graph, needed, runtime.GOMAXPROCS(0))
	out, errs := make([]*kernel, len(p.Pipelines)), make([]error, len(p.Pipelines))
	parallel(len(out), func(i int) { out[i], errs[i] = d.find(ctx, p.Graph, &p.Pipelines[i]) })
	return out, errs
}

// parameter is the index of the entry's parameter for the memory at a slot; −1: the kernel has no such argument.
func (x *kernel) parameter(slot uint8) int {
	n := 0
	for i := range x.kernel.Args {
		switch a := &x.kernel.Args[i]; {
		case a.Attribute != "":
			continue
		case a.Space != air.Threadgroup && a.Index == int(slot):
			return n
		}
		n++
	}
	return -1
}

// parameters is how many parameters the entries of a kernel have (nvptx.Compile), without the two more of moving ones.
func (x *kernel) parameters() int {
	n := 6
	for i := range x.kernel.Args {
		if x.kernel.Args[i].Attribute == "" {
			n++
		}
	}
	return n
}
