package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
)

// weights holds the weights of an instance. Weights with the same blob are on the device once, for all graphs.
type weights struct {
	of    *Instance
	blobs map[*ir.Blob]backend.Place
	owned []backend.Buffer
}

func (w *weights) close() error {
	var errs []error
	for _, b := range w.owned {
		errs = append(errs, b.Close())
	}
	w.owned, w.blobs = nil, nil
	return errors.Join(errs...)
}

// tensor is a weight for which a place on the device is to be found.
type tensor struct {
	memory *ir.Memory
	data   []byte
	align  int64 // alignment of its address in bytes that its kernels need
}

func (t *tensor) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(t.data))) }

// place returns the places of g's weights.
func (w *weights) place(ctx context.Context, g *ir.Graph, info *backend.Info) ([]backend.Place, error) {
	if w.blobs == nil {
		w.blobs = map[*ir.Blob]backend.Place{}
	}
	places := make([]backend.Place, len(g.Memories))
	total, done := int64(0), int64(0)
	loaded := func(bytes int64) {
		if done += bytes; w.of.options.Loading != nil && total > 0 {
			w.of.options.Loading(g.Name, float64(done)/float64(total))
		}
	}
	bound := backend.BoundMemories(g)
	need := elements(g)
	var mapped []tensor // weights that lie in mapped files
	var made []tensor   // those that are made for the device
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Weight && m.Alias == ir.NoMem && bound[i] {
			total += m.Size
		}
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Kind != ir.Weight || m.Alias != ir.NoMem || !bound[i] {
			continue
		}
		if m.Init.Kind != ir.InitBlob {
			p, err := w.copy(ctx, m, need[i])
			if err != nil {
				return nil, err
			}
			places[i] = p
			loaded(m.Size)
			continue
		}
		if _, placed := w.blobs[m.Init.Blob]; placed {
			loaded(m.Size)
			continue
		}
		align := max(1, m.Align, need[i])
		if m.Align == 0 {
			align = max(align, info.Loads)
		}
		if m.Init.Blob.Made() {
			made = append(made, tensor{memory: m, align: align})
			continue
		}
		data, err := m.Init.Blob.Bytes()
		if err != nil {
			return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
		}
		mapped = append(mapped, tensor{m, data, align})
	}
	copied, err := w.windows(mapped, info)
	if err != nil {
		return nil, err
	}
	for _, t := range append(copied, made...) {
		p, err := w.copy(ctx, t.memory, t.align)
		if err != nil {
			return nil, err
		}
		w.blobs[t.memory.Init.Blob] = p
		loaded(t.memory.Size)
	}
	loaded(total - done) // windows of files, which take no time
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.Weight && m.Alias == ir.NoMem && bound[i] && m.Init.Kind == ir.InitBlob {
			places[i] = w.blobs[m.Init.Blob]
		}
	}
	return places, nil
}

// copy allocates a buffer for a weight and copies its contents there.
func (w *weights) copy(ctx context.Context, m *ir.Memory, align int64) (backend.Place, error) {
	own := *m
	if align > own.Align && own.Align > 0 {
		own.Align = align
	}
	b, err := w.of.device.Alloc(backend.Spec(&own))
	if err == nil {
		w.owned = append(w.owned, b)
		var q backend.Queue
		if q, err = w.of.side(); err == nil {
			err = backend.InitMemory(ctx, q, backend.At(b), m)
		}
	}
	if err != nil {
		return backend.Place{}, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
	}
	return backend.At(b), nil
}

// elements returns, for each root memory, the size in bytes of the largest element that a kernel reads
// there, of which the memory's address must be a multiple.
func elements(g *ir.Graph) []int64 {
	need := make([]int64, len(g.Memories))
	for _, n := range g.Nodes {
		d, ok := n.(*ir.Dispatch)
		if !ok {
			continue
		}
		k := &g.Kernels[d.Kernel]
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind == ir.BindView {
				a, _ := k.Arg(b.Slot)
				root, _ := g.Root(b.View.Mem)
				need[root] = max(need[root], a.Type.Size())
			}
		}
	}
	return need
}

// farApart is the number of unused bytes between two weights from which on they get separate windows.
const farApart = 1 << 20

// window is the part of a file's mapping that becomes one buffer.
type window struct {
	file    []byte // the mapping
	lo, end int64  // offsets of whole pages in the mapping
	tensors []tensor
}

// windows makes buffers over the mapped files for the weights in list. Each weight lies in one window, and no window
// is larger than the max buffer size. It returns the weights that must be copied instead.
func (w *weights) windows(list []tensor, info *backend.Info) (copied []tensor, err error) {
	slices.SortStableFunc(list, func(a, b tensor) int { return cmp.Compare(a.address(), b.address()) })
	var at window
	end := func() error {
		if len(at.tensors) == 0 {
			return nil
		}
		b, err := w.of.device.Map(extended(at.file, at.end)[at.lo:at.end:at.end], true)
		if err != nil {
			return fmt.Errorf("weights from %%%s to %%%s: %w", ir.QuoteName(at.tensors[0].memory.Name), ir.QuoteName(at.tensors[len(at.tensors)-1].memory.Name), err)
		}
		w.owned = append(w.owned, b)
		for i := range at.tensors {
			t := &at.tensors[i]
			w.blobs[t.memory.Init.Blob] = backend.Place{Buffer: b, Offset: t.in(at.file) - at.lo}
		}
		at.tensors = at.tensors[:0]
		return nil
	}
	for _, t := range list {
		if info.PageSize == 0 || len(t.data) == 0 {
			copied = append(copied, t)
			continue
		}
		next, why := t.window(info)
		if why != "" {
			w.of.remark("weight %%%s is copied: %s", ir.QuoteName(t.memory.Name), why)
			copied = append(copied, t)
			continue
		}
		if len(at.tensors) > 0 && !at.takes(&next, &t, info) {
			if err := end(); err != nil {
				return nil, err
			}
		}
		if len(at.tensors) == 0 {
			at.file, at.lo, at.end = next.file, next.lo, next.end
		}
		at.end = max(at.end, next.end)
		at.tensors = append(at.tensors, t)
	}
	return copied, end()
}

// window returns the pages in which t lies, or the reason why no window can hold it.
func (t *tensor) window(info *backend.Info) (at window, why string) {
	page := uintptr(info.PageSize)
	if t.align > 1 && t.address()%uintptr(t.align) != 0 {
		return at, fmt.Sprintf("it lies at no multiple of %d bytes in its file", t.align)
	}
	if at.file = t.data; page > 1 {
		if at.file = mmap.Containing(t.data); at.file == nil {
			return at, "it is in no file that is mapped"
		}
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(at.file)))
	lo, end := t.address()/page*page, (t.address()+uintptr(len(t.data))+page-1)/page*page
	if lo < first || int64(end-first) > mmap.Reach(at.file) {
		return at, fmt.Sprintf("the pages of %d bytes that it lies in are not its file's alone", page)
	}
	at.lo, at.end = int64(lo-first), int64(end-first)
	if info.MaxBuffer > 0 && at.end-at.lo > info.MaxBuffer {
		return at, fmt.Sprintf("the pages that it lies in are more than the %d bytes of a buffer", info.MaxBuffer)
	}
	return at, ""
}

// in returns the offset of t in the mapping of the file that contains it.
func (t *tensor) in(file []byte) int64 {
	return int64(t.address() - uintptr(unsafe.Pointer(unsafe.SliceData(file))))
}

// takes reports whether the window may be extended by the pages of t.
func (at *window) takes(next *window, t *tensor, info *backend.Info) bool {
	return unsafe.SliceData(at.file) == unsafe.SliceData(next.file) && next.lo <= at.end+farApart &&
		(info.MaxBuffer <= 0 || next.end-at.lo <= info.MaxBuffer) &&
		(info.MaxOffset <= 0 || t.in(at.file)-at.lo <= info.MaxOffset)
}

// extended returns the mapping of a file up to byte end, which may lie after the end of the file but within its
// last page.
func extended(file []byte, end int64) []byte {
	if end <= int64(len(file)) {
		return file
	}
	return unsafe.Slice(unsafe.SliceData(file), end)
}
