package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/simd"
	"github.com/mlxc/mlxc/ir"
)

// Device is the CPU. The zero value is not usable; see [New].
type Device struct {
	mu   sync.Mutex // one replay at a time: all cores work on it
	pool *pool
	// ledger counts buffers that were allocated and not closed, and scratch.
	ledger *ledger
}

// MaxWorkers is the greatest number of workers.
const MaxWorkers = 1024

// New returns the CPU as a device of the given number of workers, at most
// [MaxWorkers]; 0 means one for each core that the process may use.
func New(workers int) *Device { return NewLimited(workers, 0) }

// NewLimited is New for a device that takes at most so many bytes of memory for
// buffers and for the scratch of kernels together; 0 means what the machine has, or the
// control group of the process allows.
func NewLimited(workers int, memory int64) *Device {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	l := newLedger(memory)
	return &Device{pool: newPool(min(workers, MaxWorkers), l), ledger: l}
}

// Close ends the device's workers.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}

// Name implements [backend.Device].
func (d *Device) Name() string { return "cpu" }

// Info implements [backend.Device].
func (d *Device) Info() backend.Info {
	return backend.Info{
		Description: fmt.Sprintf("%s/%s, pure Go%s", runtime.GOOS, runtime.GOARCH, acceleration()),
		Threads:     d.pool.workers, Memory: d.ledger.limit, MaxThreadgroup: 1024, ThreadgroupBytes: 32 << 10, Alignment: bufferAlign,
	}
}

// acceleration names the assembly in use.
func acceleration() string {
	if a := simd.Active(); a != simd.Generic {
		return " and " + string(a) + " assembly"
	}
	return ""
}

// bufferAlign keeps every tensor on its own cache lines.
const bufferAlign = 64

// buffer is allocated memory of a device, or mapped memory of nobody's.
type buffer struct {
	data  []byte
	block *block
}

func (b *buffer) Bytes() []byte { return b.data }

func (b *buffer) Close() error {
	block := b.block
	b.data, b.block = nil, nil
	return block.free()
}

// Alloc implements [backend.Device].
func (d *Device) Alloc(size int64) (backend.Buffer, error) {
	b, err := d.ledger.take(size)
	if err != nil {
		return nil, err
	}
	return &buffer{data: b.data, block: b}, nil
}

// aligned is size bytes of raw that begin at a multiple of bufferAlign.
func aligned(raw []byte, size int64) []byte {
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (bufferAlign - 1)
	return raw[skip : skip+int(size) : skip+int(size)]
}

// Map implements [backend.Device].
func (d *Device) Map(data []byte) (backend.Buffer, error) { return &buffer{data: data}, nil }

// Compile implements [backend.Device].
func (d *Device) Compile(p *backend.Program) (backend.Executable, error) {
	e := &executable{device: d, graph: p.Graph, profile: p.Profile, mem: make([][]byte, len(p.Graph.Memories)), generated: map[ir.KernelID]*Kernel{}}
	for i := range p.Graph.Memories {
		m := &p.Graph.Memories[i]
		root, off := p.Graph.Root(ir.MemID(i))
		if int(root) >= len(p.Buffers) || p.Buffers[root] == nil {
			continue // an error if a command binds it
		}
		data := p.Buffers[root].Bytes()
		if int64(len(data)) < off+m.Size {
			return nil, fmt.Errorf("cpu: memory %%%s needs %d bytes, its buffer has %d", m.Name, off+m.Size, len(data))
		}
		e.mem[i] = data[off : off+m.Size : off+m.Size]
	}
	for i, n := range p.Graph.Nodes {
		if err := e.add(n); err != nil {
			return nil, fmt.Errorf("cpu: graph %s: %s: %w", p.Graph.Name, p.Graph.DescribeNode(i), err)
		}
	}
	return e, nil
}
