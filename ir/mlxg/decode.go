package mlxg

import (
	"context"
	"math"

	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// The codes with which the array of a node begins (docs/file-format.md).
const (
	nodeDispatch = iota
	nodeCopy
	nodeFill
	nodeBarrier
	nodeCommit
	nodeGroupBegin
	nodeGroupEnd
	nodeJoin
	nodeCarry
	nodeIndirect // a dispatch that reads its grid or offsets from memory
)

// nodeSize has the number of elements of the array of a node, by its code.
var nodeSize = [...]int{
	nodeDispatch:   11,
	nodeCopy:       6,
	nodeFill:       6,
	nodeBarrier:    1,
	nodeCommit:     3,
	nodeGroupBegin: 2,
	nodeGroupEnd:   1,
	nodeJoin:       2,
	nodeCarry:      6,
	nodeIndirect:   13,
}

// The bits of a graph's attributes.
const (
	graphSerial   = 1 << iota // ir.Serial
	graphEdges                // ir.ByEdges
	graphNextHost             // ir.Graph.NextHost
)

// edgeSize is how many elements of the flat list of edges belong to one edge.
const edgeSize = 3

// graphSize is the number of elements of the array of a graph.
const graphSize = 10

// The bits of a write's flags.
const (
	writeMust   = 1
	writeAtomic = 2
)

// decodeMeta reads section META, which refers to strings and blobs by index.
func (im *image) decodeMeta(ctx context.Context, strs []string, blobs []*ir.Blob, places []blobPlace) (*ir.Module, error) {
	d := &decoder{ctx: ctx, cursor: im.cursor(metaSection), strs: strs, blobs: blobs, places: places}
	m := &ir.Module{}
	if d.tuple("the module", 2) {
		n := d.list("graphs", 7)
		for i := 0; i < n && d.err == nil; i++ {
			d.enter(0, "graph", i)
			m.Graphs = append(m.Graphs, d.graphAt())
		}
		d.graph = ""
		d.leave(0)
		n = d.list("data", 3)
		for i := 0; i < n && d.err == nil; i++ {
			d.enter(0, "data", i)
			m.Data = extend(m.Data, n)
			d.tuple("data", 2)
			m.Data[i] = ir.Data{Name: d.str("name"), Blob: d.blob("blob", 1)}
		}
		d.leave(0)
	}
	return m, d.end()
}

// decodeStrings reads section STRS. All strings share one allocation.
func (im *image) decodeStrings(ctx context.Context) ([]string, error) {
	c := im.cursor(stringsSection)
	all := string(c.data)
	n := c.list("the string table", 1)
	if n == 0 {
		c.fail(0, "the string table is empty, its first string must be \"\"")
	}
	var out []string
	var polls interrupt.Every
	for i := 0; i < n && c.err == nil; i++ {
		polls.Poll(ctx, 1024)
		c.enter(0, "string", i)
		b := c.utf8("string")
		if i == 0 && len(b) > 0 {
			c.fail(c.pos-len(b), "is %q, the first string must be empty", b[:min(len(b), 40)])
		}
		out = extend(out, n)
		out[i] = all[c.pos-len(b) : c.pos]
	}
	c.leave(0)
	return out, c.end()
}

// decoder reads section META into an [ir.Module].
type decoder struct {
	ctx context.Context
	*cursor
	strs   []string
	blobs  []*ir.Blob
	places []blobPlace // by blob
	g      *ir.Graph
	terms  []ir.Term // reused by affine
}

func (d *decoder) str(what string) string {
	i := d.int(what, 0, int64(len(d.strs)-1))
	if d.err != nil {
		return ""
	}
	return d.strs[i]
}

// blob reads the index of a blob, which must begin at a multiple of align if it
// is embedded.
func (d *decoder) blob(what string, align int64) *ir.Blob {
	start := d.pos
	i := d.int(what, 0, math.MaxInt64)
	if d.err == nil && i >= int64(len(d.blobs)) {
		d.fail(start, "%s is %d, the blob table has %d", what, i, len(d.blobs))
	}
	if d.err != nil {
		return nil
	}
	b := d.blobs[i]
	if b.Path == "" && align > 1 && d.places[i].bytes%align != 0 {
		d.fail(start, "blob %d begins at byte %d of the file, the memory wants an alignment of %d", i, d.places[i].bytes, align)
	}
	return b
}

// digest reads a SHA-256.
func (c *cursor) digest(what string) (out ir.Digest) {
	start := c.pos
	b := c.bin(what)
	if c.err == nil && len(b) != len(out) {
		c.fail(start, "%s has %d bytes, a SHA-256 has %d", what, len(b), len(out))
	}
	copy(out[:], b)
	return out
}

func (d *decoder) dtype(what string) ir.DType {
	return ir.DType(d.int(what, int64(ir.Invalid), int64(ir.U6)))
}

func (d *decoder) graphAt() *ir.Graph {
	g := &ir.Graph{Source: &ir.Source{File: d.file, Shared: true}}
	d.g = g
	d.graph = ""
	if !d.tuple("the graph", graphSize) {
		return g
	}
	g.Name = d.str("name")
	d.graph = g.Name
	d.leave(0)

	n := d.list("params", 21)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(0, "param", i)
		g.Params = extend(g.Params, n)
		d.tuple("the param", 4)
		g.Params[i] = ir.Param{Name: d.str("name"), Type: d.dtype("type"), Min: d.float64("min"), Max: d.float64("max")}
	}
	d.leave(0)
	n = d.list("constraints", 3)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(0, "constraint", i)
		g.Constraints = extend(g.Constraints, n)
		d.tuple("the constraint", 2)
		g.Constraints[i] = ir.Constraint{LHS: d.affine("left side"), Max: d.int("bound", math.MinInt64, math.MaxInt64)}
	}
	d.leave(0)
	n = d.list("memories", 10)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(0, "memory", i)
		g.Memories = extend(g.Memories, n)
		g.Source.Memories = extend(g.Source.Memories, n)
		g.Source.Memories[i].Offset = d.base + int64(d.pos)
		d.memory(&g.Memories[i])
	}
	d.leave(0)
	n = d.list("kernels", 6)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(0, "kernel", i)
		g.Kernels = extend(g.Kernels, n)
		d.kernel(&g.Kernels[i])
	}
	d.leave(0)
	n = d.list("nodes", 2)
	d.nodes(n)
	d.leave(0)
	d.attributes(g)
	d.edges(g)
	d.burst(g)
	return g
}

// burst reads what concerns a burst, which is several replays in one submission: pairs of a param
// and the step by which it advances, and the outputs whose contents are kept after every
// replay.
func (d *decoder) burst(g *ir.Graph) {
	start := d.pos
	n := d.list("advances", 1)
	if n%2 != 0 {
		d.fail(start, "advances have %d elements, want pairs of param and step", n)
	}
	for i := 0; i < n/2 && d.err == nil; i++ {
		at := d.pos
		p, step := d.index("param that advances", len(g.Params)), d.int("step", -math.MaxUint32, math.MaxUint32)
		switch {
		case d.err != nil:
		case step == 0 || g.Params[p].Advance != 0:
			d.fail(at, "param %d has an advance of 0, or is listed twice", p)
		default:
			g.Params[p].Advance = step
		}
	}
	n = d.list("outputs of every replay", 1)
	for i := 0; i < n && d.err == nil; i++ {
		at := d.pos
		m := d.index("output of every replay", len(g.Memories))
		switch {
		case d.err != nil:
		case g.Memories[m].Every:
			d.fail(at, "memory %d is listed twice among the outputs of every replay", m)
		default:
			g.Memories[m].Every = true
		}
	}
}

// indirect reads where in memory a dispatch finds its grid and offsets.
func (d *decoder) indirect() *ir.Indirect {
	x := &ir.Indirect{}
	if !d.isNil("place of the grid") {
		v := d.view("place of the grid")
		x.Grid = &v
	}
	n := d.list("offsets in memory", 3)
	for i := 0; i < n && d.err == nil; i++ {
		if d.tuple("the offset in memory", 2) {
			x.Offsets = append(x.Offsets, ir.OffsetAt{Slot: uint8(d.int("slot", 0, math.MaxUint8)), At: d.view("place of the offset")})
		}
	}
	return x
}

func (d *decoder) attributes(g *ir.Graph) {
	start := d.pos
	flags := d.int("attributes", 0, graphSerial|graphEdges|graphNextHost)
	switch flags & (graphSerial | graphEdges) {
	case graphSerial:
		g.Ordering = ir.Serial
	case graphEdges:
		g.Ordering = ir.ByEdges
	case graphSerial | graphEdges:
		d.fail(start, "attributes are %d: the graph is ordered both by its list and by edges", flags)
	}
	g.NextHost = flags&graphNextHost != 0
}

// edges reads the edges, whose From, To and Previous stand one after another in a flat list.
func (d *decoder) edges(g *ir.Graph) {
	start := d.pos
	n := d.list("edges", 1)
	if n%edgeSize != 0 {
		d.fail(start, "edges have %d elements, want triples of from, to and previous", n)
	}
	var polls interrupt.Every
	for i := 0; i < n/edgeSize && d.err == nil; i++ {
		polls.Poll(d.ctx, 1024)
		g.Edges = extend(g.Edges, n/edgeSize)
		g.Edges[i] = ir.Edge{From: d.id("from"), To: d.id("to"), Previous: d.int("previous", 0, 1) == 1}
	}
}

func (d *decoder) memory(m *ir.Memory) {
	if !d.tuple("the memory", 9) {
		return
	}
	m.Name = d.str("name")
	m.Kind = ir.MemKind(d.int("kind", int64(ir.Weight), int64(ir.Argument)))
	m.Storage = ir.Storage(d.int("storage", int64(ir.Shared), int64(ir.Private)))
	m.Size = d.int("size", 0, math.MaxInt64)
	m.Align = d.int("alignment", 0, math.MaxInt64)
	m.DType = d.dtype("element type")
	if !d.isNil("shape") {
		n := d.list("shape", 1)
		if d.err == nil {
			m.Shape = []int64{} // a scalar's shape is empty, not absent
		}
		for i := 0; i < n && d.err == nil; i++ {
			m.Shape = extend(m.Shape, n)
			m.Shape[i] = d.int("dimension", 0, math.MaxInt64)
		}
	}
	if !d.isNil("initial contents") && d.tuple("initial contents", 2) {
		m.Init.Kind = ir.InitKind(d.int("sort of the initial contents", int64(ir.InitBlob), int64(ir.InitValues)))
		switch m.Init.Kind {
		case ir.InitBlob:
			m.Init.Blob = d.blob("blob", m.Align)
		case ir.InitFill:
			m.Init = ir.FillU32(uint32(d.int("pattern", 0, math.MaxUint32)))
		case ir.InitRandom:
			m.Init.Seed = d.uint64("seed")
		case ir.InitValues:
			m.Init.Values = d.values()
		}
	}
	m.Alias = ir.NoMem
	if !d.isNil("alias") && d.tuple("alias", 2) {
		m.Alias = ir.MemID(d.int("memory of the alias", 0, math.MaxInt32))
		m.AliasOff = d.int("offset of the alias", 0, math.MaxInt64)
	}
}

func (d *decoder) values() []ir.Value {
	n := d.list("values", 5)
	out := []ir.Value{}
	for i := 0; i < n && d.err == nil; i++ {
		out = extend(out, n)
		v := &out[i]
		if !d.tuple("the value", 4) {
			break
		}
		v.Off = d.int("offset of the value", 0, math.MaxInt64)
		v.Type = d.dtype("type of the value")
		if ir.BindingKind(d.int("kind of the value", int64(ir.BindBytes), int64(ir.BindScalar))) == ir.BindBytes {
			v.Bytes = append([]byte{}, d.bin("bytes of the value")...)
		} else {
			v.Expr = d.affine("expression of the value")
		}
	}
	return out
}

func (d *decoder) kernel(k *ir.Kernel) {
	if !d.tuple("the kernel", 5) {
		return
	}
	k.Name = d.str("name")
	if d.tuple("library", 3) {
		k.Library.Kind = ir.LibraryKind(d.int("kind of the library", int64(ir.Builtin), int64(ir.Generated)))
		k.Library.Path = d.str("path of the library")
		if !d.isNil("digest of the library") {
			k.Library.Digest = d.digest("digest of the library")
		}
	}
	k.Function = d.str("function")
	n := d.list("function constants", 5)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(1, "function constant", i)
		k.Constants = extend(k.Constants, n)
		d.tuple("the function constant", 4)
		k.Constants[i] = ir.FunctionConstant{
			Index: uint16(d.int("index", 0, math.MaxUint16)), Name: d.str("name"),
			Type: d.dtype("type"), Bits: d.uint64("bits"),
		}
	}
	d.leave(1)
	n = d.list("arguments", 7)
	for i := 0; i < n && d.err == nil; i++ {
		d.enter(1, "argument", i)
		k.Args = extend(k.Args, n)
		d.tuple("the argument", 6)
		k.Args[i] = ir.Arg{
			Slot: uint8(d.int("slot", 0, math.MaxUint8)), Name: d.str("name"),
			Kind:   ir.ArgKind(d.int("kind", int64(ir.DeviceArg), int64(ir.ThreadgroupArg))),
			Access: ir.ArgAccess(d.int("access", int64(ir.ReadArg), int64(ir.ReadWriteArg))),
			Type:   d.dtype("type"), Count: int32(d.int("count", 0, math.MaxInt32)),
		}
	}
	d.leave(1)
}
