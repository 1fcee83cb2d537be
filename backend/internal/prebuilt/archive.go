package prebuilt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/mlxc/mlxc/backend/internal/kernelcode"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/term"
)

// Request names a compiled kernel.
type Request struct {
	File      string // of the Metal source
	Code      Digest // of the source, [NewRequest]
	Function  string
	Constants []air.ConstantValue // in any order; those left out are 0
	Launch    nvptx.Launch
	Matrices  bool // it multiplies matrices
}

// Digest is a SHA-256.
type Digest [sha256.Size]byte

// NewRequest names a kernel of a Metal source, without constants. Its digest is of what a compiler sees of
// the source for that kernel (remarks, most of what is declared and other kernels do not count) and of
// what it may believe of it beside that.
func NewRequest(file, source, function string) Request {
	in := declared(air.Input{Kernel: &air.Kernel{}}, file, function)
	h := sha256.New()
	code := msl.Code(source, []string{function})
	fmt.Fprintf(h, "%v %d\n%s", in.Aligned, in.Kernel.MaxThreadgroup, code)
	return Request{File: file, Function: function, Code: Digest(h.Sum(nil)), Matrices: strings.Contains(code, "simdgroup_multiply") && ofMatrices(file, function)}
}

// OfFile names a kernel of somebody's own Metal source, of which nothing else is known: its digest is of all the
// source. The folder of the file does not count.
func OfFile(path, source, function string) Request {
	return Request{File: filepath.Base(path), Function: function, Code: sha256.Sum256([]byte(source)), Matrices: strings.Contains(source, "simdgroup_multiply")}
}

// ofMatrices reports whether a declaration has a sum whose order a matrix unit makes (docs/terms.md): the code of
// a kernel has functions beside it that it does not call.
func ofMatrices(file, function string) (yes bool) {
	look := func(e *term.Expr) {
		e.Walk(func(x *term.Expr) { yes = yes || x.Op == term.Sum && (x.Class == "gemm" || x.Class == "qmm") })
	}
	for _, d := range msl.Declarations(function) {
		if d.File != file {
			continue
		}
		for _, w := range d.Wheres {
			look(w.Body)
		}
		for _, r := range d.Results {
			look(r.Body)
		}
	}
	return yes
}

// declared is a kernel of a source that is part of the program, with what our library declares of it that its
// code depends on.
func declared(in air.Input, file, function string) air.Input {
	ds := msl.Declarations(function)
	if len(ds) > 0 && ds[0].File != file {
		ds = nil
	}
	return kernelcode.Declared(in, ds)
}

// Input is what is compiled of a unit, which has the kernel.
func (r *Request) Input(u *mslc.Unit) (air.Input, error) {
	i := slices.IndexFunc(u.Kernels, func(k air.Kernel) bool { return k.Name == r.Function })
	if i < 0 {
		return air.Input{}, fmt.Errorf("%s has no kernel %s", r.File, r.Function)
	}
	module, err := u.Module(r.Function)
	return declared(air.Input{Name: r.File, IR: []byte(module), Kernel: &u.Kernels[i], Constants: r.Constants}, r.File, r.Function), err
}

// Kernel is a compiled one: its description, and what nvptx.Compile made of it.
type Kernel struct {
	Description *air.Kernel
	PTX         []byte
}

// The reasons for which an archive has no kernel.
var (
	ErrUnknown = errors.New("it is not among the kernels that are compiled beforehand")
	ErrStale   = errors.New("the prebuilt code is that of another state of its source: `make ptx` makes it anew")
	ErrMaker   = errors.New("the prebuilt code was made by another state of the compiler (internal/air, internal/toolchain): `make ptx` makes it anew")
)

// magic is what an archive begins with. Behind it stand the sizes of the index, compressed and not, of 32
// bits each, the index in JSON, and the texts, family by family.
const magic = "mlxc PTX 1\n"

// index is the head of an archive.
type index struct {
	Maker    string // [Maker] of the program that made it
	Compiler string // the clang that did, for people
	Families []family
}

// family is one Metal source, with or without tables of additions. The texts with programmatic launches and
// without are nearly the same, and so lie together.
type family struct {
	File       string
	Moving     bool
	Size, Text int // bytes, compressed and not
	Functions  []function
}

// function is a kernel with all that was compiled of it.
type function struct {
	Code   string // digest, in hexadecimal
	Kernel *air.Kernel
	Forms  []form
}

// form is one text: a function with constants.
type form struct {
	Constants    string `json:",omitempty"`
	Programmatic bool
	Addresses    bool      `json:",omitempty"` // of constants: it has them not by value
	MMA          nvptx.MMA `json:",omitempty"`
	Size         int       // of the text, which stands behind that of the form before
}

// Maker is the digest of what makes PTX of Metal sources here: a change of it makes every archive that
// was made before stale.
var Maker = sync.OnceValue(func() string {
	h := sha256.New()
	h.Write(nvptx.Generator())
	h.Write(mslc.Digest())
	return hex.EncodeToString(h.Sum(nil))
})

// constants writes values in one way: by index, those that are not 0.
func constants(values []air.ConstantValue) string {
	values = slices.Clone(values)
	slices.SortFunc(values, func(a, b air.ConstantValue) int { return a.Index - b.Index })
	var b strings.Builder
	for _, v := range values {
		if v.Bits != 0 {
			fmt.Fprintf(&b, "%d=%d ", v.Index, v.Bits)
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// Archive is a set of compiled kernels.
type Archive struct {
	index
	families []opened
	today    map[string]string // by function, the digest of today's source, whose text is that of the archive
}

// opened is a family. Its texts are tens of megabytes, so they are unpacked when one is asked for, and are
// kept until memory is collected: a device asks for all that it needs at a time.
type opened struct {
	data []byte
	mu   sync.Mutex
	text weak.Pointer[[]byte]
}

// Read opens an archive. The caller leaves data as it is.
func Read(data []byte) (*Archive, error) {
	fail := func(what string) (*Archive, error) {
		return nil, fmt.Errorf("the archive of prebuilt kernels: %s: make it anew by `make ptx`", what)
	}
	head := len(magic) + 8
	if len(data) < head || string(data[:len(magic)]) != magic {
		return fail("is none of this version")
	}
	size, text := int(binary.LittleEndian.Uint32(data[head-8:])), int(binary.LittleEndian.Uint32(data[head-4:]))
	if size > len(data)-head || text > 64<<20 {
		return fail("its index does not end")
	}
	plain, err := unpack(data[head:head+size], text)
	if err != nil {
		return fail(err.Error())
	}
	a := &Archive{}
	if err := json.Unmarshal(plain, &a.index); err != nil {
		return fail(err.Error())
	}
	rest := data[head+size:]
	a.families = make([]opened, len(a.Families))
	for i := range a.Families {
		f := &a.Families[i]
		n := 0
		for _, x := range f.Functions {
			if x.Kernel == nil {
				return fail("a kernel has no description")
			}
			for _, y := range x.Forms {
				if y.Size < 0 || y.Size > f.Text-n {
					return fail("the texts of " + f.File + " are not as long as they should be")
				}
				n += y.Size
			}
		}
		if f.Size < 0 || f.Size > len(rest) || n != f.Text || f.Text > 256<<20 {
			return fail("the texts of " + f.File + " are not as long as they should be")
		}
		a.families[i].data, rest = rest[:f.Size], rest[f.Size:]
	}
	if len(rest) > 0 {
		return fail("something stands behind its end")
	}
	return a, nil
}

// Find returns a kernel. The error is one of the reasons above, or that the archive is damaged.
func (a *Archive) Find(r Request) (Kernel, error) {
	for i := range a.Families {
		f := &a.Families[i]
		if f.File != r.File || f.Moving != r.Launch.Moving {
			continue
		}
		at := 0
		for _, x := range f.Functions {
			for _, y := range x.Forms {
				if x.Kernel.Name == r.Function && (y.Addresses != r.Launch.Values || !slices.ContainsFunc(x.Kernel.Args, func(a air.Arg) bool { return a.ByValue() })) && y.Programmatic == r.Launch.Programmatic && y.MMA == r.Launch.MMA && y.Constants == constants(r.Constants) {
					if err := a.fresh(&x, r.Code); err != nil {
						return Kernel{}, err
					}
					text, err := a.text(i)
					if err != nil {
						return Kernel{}, err
					}
					return Kernel{x.Kernel, bytes.Clone(text[at : at+y.Size])}, nil
				}
				at += y.Size
			}
		}
	}
	return Kernel{}, ErrUnknown
}

// Describe returns the description of a kernel, however it is launched. The error is one of the reasons above.
func (a *Archive) Describe(r Request) (*air.Kernel, error) {
	for i := range a.Families {
		if a.Families[i].File != r.File {
			continue
		}
		for _, x := range a.Families[i].Functions {
			if x.Kernel.Name == r.Function && slices.ContainsFunc(x.Forms, func(y form) bool { return y.Constants == constants(r.Constants) }) {
				return x.Kernel, a.fresh(&x, r.Code)
			}
		}
	}
	return nil, ErrUnknown
}

// fresh says whether a function is that of a source, compiled as it would be today.
func (a *Archive) fresh(f *function, code Digest) error {
	switch {
	case f.Code != hex.EncodeToString(code[:]) && a.today[f.Kernel.Name] != hex.EncodeToString(code[:]):
		return ErrStale
	case a.Maker != Maker():
		return ErrMaker
	}
	return nil
}

// text returns the texts of a family.
func (a *Archive) text(i int) ([]byte, error) {
	o := &a.families[i]
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.text.Value(); t != nil {
		return *t, nil
	}
	text, err := unpack(o.data, a.Families[i].Text)
	if err != nil {
		return nil, fmt.Errorf("the archive of prebuilt kernels: %s: %w", a.Families[i].File, err)
	}
	o.text = weak.Make(&text)
	return text, nil
}

// Compiled is a kernel to put into an archive.
type Compiled struct {
	Request
	Kernel
}

// Write makes an archive. The same kernels give the same bytes.
func Write(compiler string, all []Compiled) ([]byte, error) {
	all = slices.Clone(all)
	key := func(c *Compiled) string {
		return fmt.Sprintf("%s\x00%v\x00%s\x00%s\x00%v\x00%d\x00%v", c.File, c.Launch.Moving, c.Function, constants(c.Constants), c.Launch.Programmatic, c.Launch.MMA, !c.Launch.Values)
	}
	slices.SortFunc(all, func(a, b Compiled) int { return strings.Compare(key(&a), key(&b)) })
	x := index{Maker: Maker(), Compiler: compiler}
	var texts [][]byte
	for i := range all {
		c := &all[i]
		n := len(x.Families)
		if n == 0 || x.Families[n-1].File != c.File || x.Families[n-1].Moving != c.Launch.Moving {
			x.Families, texts = append(x.Families, family{File: c.File, Moving: c.Launch.Moving}), append(texts, nil)
			n++
		}
		f := &x.Families[n-1]
		m := len(f.Functions)
		if m == 0 || f.Functions[m-1].Kernel.Name != c.Function {
			f.Functions = append(f.Functions, function{Code: hex.EncodeToString(c.Code[:]), Kernel: c.Description})
			m++
		}
		f.Functions[m-1].Forms = append(f.Functions[m-1].Forms, form{constants(c.Constants), c.Launch.Programmatic, !c.Launch.Values, c.Launch.MMA, len(c.PTX)})
		texts[n-1] = append(texts[n-1], c.PTX...)
	}
	var body []byte
	for i, t := range texts {
		data, err := pack(t)
		if err != nil {
			return nil, err
		}
		x.Families[i].Size, x.Families[i].Text = len(data), len(t)
		body = append(body, data...)
	}
	plain, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	head, err := pack(plain)
	if err != nil {
		return nil, err
	}
	out := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(head)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(plain)))
	return append(append(out, head...), body...), nil
}

// Compiler is the clang that the archive was made with, for people.
func (a *Archive) Compiler() string { return a.index.Compiler }

// Count is how many texts the archive has.
func (a *Archive) Count() (n int) {
	for _, f := range a.Families {
		for _, x := range f.Functions {
			n += len(x.Forms)
		}
	}
	return n
}
