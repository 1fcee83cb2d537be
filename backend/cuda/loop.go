//go:build linux && (amd64 || arm64)

package cuda

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/internal/air"
	driver "github.com/mlxc/mlxc/internal/cuda"
)

// A loop is a graph of CUDA's whose only node runs another graph, that of one replay, as often as a number in
// the GPU's memory says. One launch then does many replays, with the nodes of one. What the driver's
// documentation leaves open of such inner graphs is not used: their nodes are neither changed nor left out
// (a loop is made anew then), and the last replay of a submission, in which some steps may not run, is no
// part of a loop.

// againPTX counts the replays that are left down, and has the graph run again if there are any.
//
//go:embed again.ptx
var againPTX []byte

// mostLooped is how many replays a loop does at most: a context that ends is heard between two loops.
const mostLooped = 256

// loops is what a device has for loops.
type loops struct {
	on     bool // asked for
	mu     sync.Mutex
	module driver.Module
	again  driver.Function
	why    error // loops do not work here
}

// loop returns the kernel that has a loop go on.
func (d *Device) loop() (driver.Function, error) {
	x := &d.loops
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.again != 0 || x.why != nil {
		return x.again, x.why
	}
	if x.module, x.why = driver.LoadModule(againPTX); x.why == nil {
		x.again, x.why = x.module.Function(air.PTXEntry)
	}
	return x.again, x.why
}

// refuse notes that loops do not work. What they would have done is done by graphs of several replays.
func (x *loops) refuse(why error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.why == nil {
		x.why = why
	}
}

// Looped says why replays are not launched by loops: they were not asked for, or the driver has refused one;
// nil: they are.
func (d *Device) Looped() error {
	x := &d.loops
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.on {
		return errors.New("cuda: loops were not asked for")
	}
	return x.why
}

// Loops reports whether they were asked for.
func (d *Device) Loops() bool { return d.loops.on }

// loopable reports whether all replays but the last may be a loop: none of their steps is left out.
func (l *launches) loopable() bool {
	if !l.device.loops.on || l.rules == nil || l.device.loops.refused() {
		return false
	}
	for _, n := range l.sometimes {
		if empty(&l.list[n]) {
			return false
		}
	}
	return true
}

func (x *loops) refused() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.why != nil
}

// looped returns a loop for launches that have their parameters; nil if the driver refuses one.
func (l *launches) looped(how Plan) (*topology, error) {
	if l.again != nil && l.again.version == l.version {
		return l.again, nil
	}
	old := l.again
	l.again = nil
	if old != nil { // a launch of it that runs ends first
		if err := old.destroy(); err != nil {
			return nil, err
		}
	}
	t, err := l.newLoop(how)
	switch {
	case err == nil:
		l.again = t
	case driver.Sticky(err):
		return nil, err
	default:
		l.device.loops.refuse(fmt.Errorf("cuda: the driver does not take a loop: %w", err))
		return nil, nil
	}
	return t, nil
}

func (l *launches) newLoop(how Plan) (made *topology, err error) {
	t := &topology{times: 1}
	defer func() {
		if err != nil {
			made, err = nil, errors.Join(err, t.destroy())
		}
	}()
	again, err := l.device.loop()
	if err != nil {
		return nil, err
	}
	if t.graph, err = driver.NewGraph(); err != nil {
		return nil, err
	}
	condition, body, err := l.device.gpu.AddWhile(t.graph)
	if err != nil {
		return nil, err
	}
	begin := len(l.block) - loopBytes
	l.put(begin, 2, 0, uint64(l.memory.at)+uint64(l.rules.left))
	l.put(begin, 2, 1, uint64(condition))
	last := driver.Launch{Function: again, Grid: [3]uint32{1, 1, 1}, Block: 1, Params: uintptr(unsafe.Pointer(&l.block[begin+16]))}
	if err := t.fill(body, l, how, &last); err != nil {
		return nil, err
	}
	t.exec, err = t.graph.Instantiate()
	t.version = l.version
	return t, err
}

// loopBytes are those of the parameters of a loop's last kernel, and of pointers to them.
const loopBytes = 2 * 16

// run launches a loop of n replays. staged is memory of the host's, of which nothing is in flight.
func (t *topology) run(l *launches, s driver.Stream, n int, staged []byte) error {
	binary.LittleEndian.PutUint32(staged, uint32(n))
	if err := driver.CopyToDevice(s, l.memory.at+driver.Address(l.rules.left), staged[:4]); err != nil {
		return err
	}
	return t.exec.Launch(s)
}
