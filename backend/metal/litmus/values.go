//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/mlxc/mlxc/internal/objc"
)

// page is the size of a page on Apple's chips, in bytes; buffers without a copy are whole pages.
const page = 16 << 10

// values are the tests whose results do not depend on chance, and that have no control.
var values = []*test{
	{
		name: "value/no-threadgroups", use: "every replay", required: true, values: true, few: 20,
		says: "an indirect dispatch of no threadgroups does nothing, and what comes after it runs",
		run: func(p *program) error {
			counts := words(p.y, elements)
			copy(counts, []uint32{0, 1, 1, 1, 0, 0, 0, 0, 0})
			p.commits(func(e *pass) {
				e.inTurn(true, func(i int) {
					e.step(i)
					e.barrier()
					e.b.Send(objc.DispatchIndirect, e.id, uintptr(p.y), uintptr(12*(i%3)), e.b.Size(32, 1, 1))
				})
			})
			return nil
		},
	},
	{
		name: "value/unretained", use: "unretained references", values: true, few: 20,
		says: "a command buffer that retains nothing runs with what lives until it has ended",
		run: func(p *program) error {
			c := objc.Retain(objc.CommandBufferUnretained.SendID(p.queue))
			p.chain(c)
			p.commit(c)
			return nil
		},
	},
	{
		name: "value/set-bytes", use: "every replay", required: true, values: true, unchained: true, few: 20,
		says: "setBytes:length:atIndex: takes from 4 to 4,096 bytes",
		run: func(p *program) error {
			for _, n := range []int{4, 12, 16, 252, 1020, 4096} {
				if err := p.copies("litmus_constant", n/4, func(e *pass) {
					data := make([]byte, n)
					for i := range n / 4 {
						binary.LittleEndian.PutUint32(data[4*i:], mark(i))
					}
					e.b.Send(objc.SetBytes, e.id, e.b.Bytes(data), uintptr(n), 0)
				}); err != nil {
					return fmt.Errorf("%d bytes: %w", n, err)
				}
			}
			return nil
		},
	},
	{
		name: "value/constant-offset", use: "every replay", required: true, values: true, unchained: true, few: 20,
		says: "an argument in constant memory may begin at any multiple of 4 bytes",
		run: func(p *program) error {
			from := p.source()
			defer objc.Release(from)
			if from == 0 {
				return errors.New("the system gives no buffer")
			}
			for _, offset := range []int{4, 8, 12, 20, 36, 100, 260} {
				w := words(from, page/4)
				for i := range 16 {
					w[offset/4+i] = mark(i)
				}
				if err := p.copies("litmus_constant", 16, func(e *pass) {
					e.b.Send(objc.SetBuffer, e.id, uintptr(from), uintptr(offset), 0)
				}); err != nil {
					return fmt.Errorf("offset %d: %w", offset, err)
				}
			}
			return nil
		},
	},
	{
		name: "value/private", use: "private memory", values: true, unchained: true, few: 20,
		says: "a kernel copies into memory that is the GPU's alone, and from it",
		run: func(p *program) error {
			private := objc.NewBuffer.SendID(p.device, 4*elements, uintptr(objc.ResourceStorageModePrivate))
			if private == 0 {
				return errors.New("the system gives no private buffer")
			}
			defer objc.Release(private)
			for i := range elements {
				words(p.x, elements)[i] = mark(i)
			}
			return p.copies("litmus_copy", elements, func(e *pass) {
				e.b.Send(objc.SetPipeline, e.id, uintptr(p.pipes["litmus_copy"]))
				e.b.Send(objc.SetBuffer, e.id, uintptr(p.x), 0, 0)
				e.b.Send(objc.SetBuffer, e.id, uintptr(private), 0, 1)
				e.threads(elements)
				e.barrier()
				e.b.Send(objc.SetBuffer, e.id, uintptr(private), 0, 0)
			})
		},
	},
	{
		name: "value/archive", use: "pipelines that are kept in a file", values: true, few: 3,
		says: "a pipeline is found in an archive that was written to a file and opened again, and no other is",
		run: func(p *program) error {
			found, err := p.archived("litmus_step", "litmus_copy")
			if err != nil {
				return err
			}
			defer objc.Release(found)
			made := p.pipes["litmus_step"]
			p.pipes["litmus_step"] = found
			c := p.commandBuffer(p.queue)
			p.chain(c)
			p.pipes["litmus_step"] = made
			p.commit(c)
			return p.land(0)
		},
	},
	{
		name: "value/no-copy", use: "weights", required: true, values: true, unchained: true, few: 5,
		says: "a buffer without a copy shows the GPU a file that is mapped for reading",
		run: func(p *program) error {
			mapped, err := mappedFile()
			if err != nil {
				return &unsupported{err.Error(), "make room in the folder for temporary files"}
			}
			defer syscall.Munmap(mapped)
			// Pages of the system may be smaller than those of the buffer.
			begin := -uintptr(unsafe.Pointer(&mapped[0])) & (page - 1)
			from := objc.NewBufferNoCopy.SendID(p.device, uintptr(unsafe.Pointer(&mapped[begin])), page, uintptr(objc.ResourceStorageModeShared), 0)
			if from == 0 {
				return errors.New("the system makes no buffer over a mapped file")
			}
			defer objc.Release(from)
			return p.copies("litmus_copy", elements, func(e *pass) {
				e.b.Send(objc.SetBuffer, e.id, uintptr(from), 0, 0)
			})
		},
	},
}

// empty returns the test of a grid of no threads, which the backend never sends. It runs last, since no
// documentation says that a GPU survives it.
func empty(o Options) *test {
	return &test{
		name: "value/no-threads", use: "nothing", values: true, few: 20,
		says: "a dispatch of no threads does nothing, and what comes after it runs",
		run: func(p *program) error {
			if !o.EmptyGrids {
				return &unsupported{"Metal's API validation is switched on, and ends a process that dispatches no threads", "run it without MTL_DEBUG_LAYER; nothing relies on it"}
			}
			p.commits(func(e *pass) {
				e.inTurn(true, func(i int) {
					e.step(i)
					e.barrier()
					e.threads(0)
				})
			})
			return nil
		},
	}
}

// mark returns a number that memory does not hold by chance.
func mark(i int) uint32 { return 0x9e3779b9*uint32(i+1) ^ 0x5bd1e995 }

// source returns a buffer of one page, which the caller releases.
func (p *program) source() objc.ID {
	return objc.NewBuffer.SendID(p.device, page, uintptr(objc.ResourceStorageModeShared))
}

// copies runs a kernel that copies the n words that f has bound to slot 0, and returns an error if the copies
// are not mark(0) to mark(n-1).
func (p *program) copies(kernel string, n int, f func(e *pass)) error {
	to := p.source()
	if to == 0 {
		return errors.New("the system gives no buffer")
	}
	defer objc.Release(to)
	p.commits(func(e *pass) {
		f(e)
		e.b.Send(objc.SetPipeline, e.id, uintptr(p.pipes[kernel]))
		e.b.Send(objc.SetBuffer, e.id, uintptr(to), 0, 1)
		e.threads(n)
	})
	if err := p.land(0); err != nil {
		return err
	}
	for i, v := range words(to, n) {
		if v != mark(i) {
			return fmt.Errorf("word %d is %#x and not %#x", i, v, mark(i))
		}
	}
	return nil
}

// mappedFile maps two pages of a temporary file that is removed already; each 4 KiB of it holds the same marks.
func mappedFile() ([]byte, error) {
	f, err := os.CreateTemp("", "litmus")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = os.Remove(f.Name())
	data := make([]byte, 2*page)
	for i := range len(data) / 4 {
		binary.LittleEndian.PutUint32(data[4*i:], mark(i%1024))
	}
	if _, err := f.Write(data); err != nil {
		return nil, err
	}
	return syscall.Mmap(int(f.Fd()), 0, len(data), syscall.PROT_READ, syscall.MAP_SHARED)
}
