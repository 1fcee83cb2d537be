package mlxg

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// OpenBytes opens a container in memory, without external files.
func OpenBytes(ctx context.Context, name string, data []byte, o OpenOptions) (*ir.Module, error) {
	im, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	m, _, _, err := im.decode(ctx, o.Verify)
	return m, err
}

// Resum corrects the checksums of a container after its bytes were changed, as an attacker
// would.
func Resum(data []byte) []byte {
	le := binary.LittleEndian
	n := int(le.Uint32(data[12:]))
	for i := range n {
		e := data[fixedHeader+i*entrySize:]
		off, length := le.Uint64(e[8:]), le.Uint64(e[16:])
		if off <= uint64(len(data)) && length <= uint64(len(data))-off {
			le.PutUint32(e[24:], crc32.Checksum(data[off:off+length], castagnoli))
		}
	}
	return ResumHeader(data)
}

// ResumHeader corrects the checksum of a container's header.
func ResumHeader(data []byte) []byte {
	le := binary.LittleEndian
	end := headerSize(int(le.Uint32(data[12:])))
	le.PutUint32(data[end-4:], crc32.Checksum(data[:end-4], castagnoli))
	return data
}

// Part is a section with its contents.
type Part struct {
	Kind  string
	Flags uint32
	Data  []byte
}

// Join returns a container with the given sections, whether or not
// their contents are valid.
func Join(parts ...Part) []byte {
	pos := uint64(headerSize(len(parts)))
	var table []section
	var body []byte
	for _, p := range parts {
		s := section{kind: sectionKind([]byte(p.Kind)), flags: p.Flags, offset: pos, length: uint64(len(p.Data)), crc: crc32.Checksum(p.Data, castagnoli)}
		if p.Kind == weightSection.String() {
			s.offset = uint64(alignUp(int64(pos), weightAlign))
			body = append(body, make([]byte, s.offset-pos)...)
		}
		body = append(body, p.Data...)
		pos = s.offset + s.length
		table = append(table, s)
	}
	return append(header(table), body...)
}

// Split is the inverse of Join.
func Split(data []byte) []Part {
	im, err := parse("split", data)
	if err != nil {
		panic(err)
	}
	var out []Part
	for i := range int(binary.LittleEndian.Uint32(data[12:])) {
		k := sectionKind(data[fixedHeader+i*entrySize:][:4])
		if s, ok := im.sections[k]; ok {
			out = append(out, Part{Kind: k.String(), Flags: s.flags, Data: im.bytes(s)})
		}
	}
	return out
}

// SmallModule returns a module that has every kind of value of the format.
func SmallModule() (*ir.Module, error) {
	b := ir.NewBuilder("decode")
	pos := b.Param("pos", 0, 7)
	n := b.Param("n", 1, 8)
	eps := b.ParamF32("eps", 0, 1)
	b.Require(ir.Linear(0, ir.Term{Param: pos, Coeff: 1}, ir.Term{Param: n, Coeff: 1}), 8)
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 64, DType: ir.F32, Shape: []int64{2, 8}})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Storage: ir.Private, Size: 64})
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 16, Align: 512, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob([]byte("sixteen weights."))}})
	ext := b.Memory(ir.Memory{Name: "ext", Kind: ir.Weight, Size: 300, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.ExternalBlob("w.bin", 70000, 300, ir.Digest{1, 2, 3})}})
	b.Memory(ir.Memory{Name: "filled", Kind: ir.Weight, Size: 8, Init: ir.FillU32(0x89abcdef)})
	kv := b.Memory(ir.Memory{Name: "kv", Kind: ir.State, Size: 64, Init: ir.Init{Kind: ir.InitRandom, Seed: 1 << 63}})
	row := b.Alias("row", kv, 16, 32)
	scratch := b.Memory(ir.Memory{Name: "s", Kind: ir.Scratch, Size: 1 << 40})
	k := b.Kernel(ir.Kernel{
		Name: "k", Library: ir.Library{Kind: ir.Metallib, Path: "mlx.metallib", Digest: ir.Digest{9}}, Function: "rope",
		Constants: []ir.FunctionConstant{{Index: 300, Name: "traditional", Type: ir.Bool, Bits: 1}, {Index: 301, Type: ir.U64, Bits: 1<<64 - 1}},
		Args: []ir.Arg{
			{Slot: 0, Name: "in", Type: ir.F32},
			{Slot: 1, Name: "out", Access: ir.WriteArg, Type: ir.F32},
			{Slot: 2, Name: "w", Type: ir.U4},
			{Slot: 3, Name: "shape", Kind: ir.ConstantArg, Type: ir.I32, Count: 2},
			{Slot: 4, Name: "pos", Kind: ir.ConstantArg, Type: ir.I64, Count: 1},
			{Slot: 5, Name: "eps", Kind: ir.ConstantArg, Type: ir.F32, Count: 1},
			{Slot: 0, Name: "shared", Kind: ir.ThreadgroupArg, Type: ir.F32},
		},
	})
	b.Kernel(ir.Kernel{Name: "builtin", Function: "copy"})
	b.Group("layer 0 ☺")
	b.Fill(ir.ViewOf(y, 0, 16), 7, "")
	b.Dispatch(ir.Dispatch{
		Kernel: k, Op: "rope", Label: "a label that is somewhat longer than 31 bytes",
		Bindings: []ir.Binding{
			ir.BufferArg(0, ir.ViewOf(x, 0, 64)),
			ir.BufferArg(1, ir.View{Mem: row, Off: ir.Linear(0, ir.Term{Param: pos, Coeff: 4}), Len: ir.Linear(0, ir.Term{Param: n, Coeff: 4})}),
			ir.BufferArg(2, ir.ViewOf(w, 0, 16)),
			ir.BytesArg(3, ir.ValueBytes([]int32{-1, 1 << 30})),
			ir.ScalarArg(4, ir.I64, ir.Linear(-1<<40, ir.Term{Param: pos, Coeff: -3}, ir.Term{Param: n, Coeff: 1 << 20})),
			ir.ScalarArg(5, ir.F32, ir.Linear(0, ir.Term{Param: eps, Coeff: 1})),
		},
		ThreadgroupMemory: []ir.ThreadgroupMemory{{Slot: 0, Bytes: 1024}},
		GridKind:          ir.Threads,
		Grid:              [3]ir.Extent{{Num: ir.Linear(31, ir.Term{Param: n, Coeff: 1}), Div: 32}, ir.Ext(70000), ir.Ext(1)},
		Threadgroup:       [3]uint32{32, 4, 1},
		Effects: &ir.Effects{
			Complete: true,
			Reads:    []ir.Region{ir.ViewOf(x, 0, 64).Contiguous(), ir.ViewOf(ext, 0, 300).Contiguous()},
			Writes: []ir.Write{{
				Region: ir.Region{Mem: row, Off: ir.Const(0), Run: ir.Const(4), Dims: []ir.Dim{{Count: ir.Linear(0, ir.Term{Param: n, Coeff: 1}), Stride: 4}}}, Must: true,
			}, {Region: ir.ViewOf(scratch, 1<<33, 4).Contiguous(), Atomic: true}},
		},
		From: []ir.ID{1, 1 << 20},
	})
	b.Barrier()
	b.Copy(ir.ViewOf(y, 32, 16), ir.ViewOf(kv, 48, 16), "copy")
	b.Commit(ir.OrderFence, "first")
	b.EndGroup()
	g, err := b.Graph()
	if err != nil {
		return nil, err
	}
	prefill := ir.NewBuilder("prefill")
	prefill.Memory(ir.Memory{Name: "kv", Kind: ir.State, Size: 64, Init: ir.Init{Kind: ir.InitRandom, Seed: 1 << 63}})
	last := prefill.Fill(ir.ViewOf(0, 0, 8), 1, "")
	join := prefill.Join()
	prefill.After(join, last)
	prefill.AfterPrevious(last, join, last)
	p, err := prefill.Graph()
	if err != nil {
		return nil, err
	}
	p.NextHost = true
	m := &ir.Module{Graphs: []*ir.Graph{g, p}, Data: []ir.Data{{Name: "tokenizer", Blob: ir.NewBlob([]byte("tokens"))}, {Name: "empty", Blob: ir.NewBlob(nil)}}}
	return m, m.Check()
}

// WriteUnchecked is WriteFile for a module that need not pass its check.
func WriteUnchecked(path string, m *ir.Module) error {
	rebase, err := Rebase(filepath.Dir(path), "")
	if err != nil {
		return err
	}
	p, err := planBlobs(m, false, rebase, nil)
	if err != nil {
		return err
	}
	w := &writer{m: m, plan: p}
	var b bytes.Buffer
	sections, err := w.body(context.Background(), &b, true)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(header(sections), b.Bytes()...), 0o600)
}

// OnlyTimes makes only the size and the modification time, which a test can set, tell the
// states of a file apart. restore undoes this.
func OnlyTimes() (restore func()) {
	identityOf = func(os.FileInfo) (int64, uint64, uint64) { return 0, 0, 0 }
	return func() { identityOf = identity }
}

// Settle sets how old a file must be for its digests to be remembered.
func Settle(d time.Duration) (restore func()) {
	was := settled
	settled = d
	return func() { settled = was }
}
