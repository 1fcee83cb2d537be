package cpu

import "unsafe"

// guarded is memory with guard bands around the view that a kernel gets. The view's capacity includes the band after
// it, as the view into a larger memory does.
type guarded struct {
	words []uint32
	n     int // bytes of the view
}

const (
	guardWords = 64
	sentinel   = 0x7fa57fa5 // a NaN that no kernel produces; as f16, each half of it is one too
)

func newGuarded(n int) *guarded {
	b := &guarded{make([]uint32, 2*guardWords+(n+3)/4), n}
	for i := range b.words {
		b.words[i] = sentinel
	}
	return b
}

func (b *guarded) view() []byte {
	all := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(b.words))), 4*len(b.words))
	return all[4*guardWords:][:b.n]
}
