package mlxfn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/safetensors"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/tokenizer"
)

// Source is the front end of .mlxfn files.
var Source = frontend.Source{
	Name:  "mlxfn",
	Holds: "functions that MLX " + strings.TrimSuffix(fmt.Sprintf("%d.%d.%d", oldest[0], oldest[1], oldest[2]), ".0") + " and later have exported (mx.export_function), traced on a GPU or on a CPU",
	Match: match,
	Open:  func(f *frontend.File) (frontend.Model, error) { return open(f) },
}

// match looks for the length of a short string and a version in it. The format has no mark of its own.
func match(f *frontend.File) bool {
	if f.Folder || len(f.Head) < 16 || f.Head[0] < 5 || f.Head[0] > 63 || !bytes.Equal(f.Head[1:8], make([]byte, 7)) {
		return false
	}
	_, ok := releaseOf(string(f.Head[8:min(len(f.Head), 8+int(f.Head[0]))]))
	return ok
}

// Model is an open file.
type Model struct {
	*File
	mapping *mmap.Map
	weights []*safetensors.File // that modules refer to
	remarks []string
}

func open(f *frontend.File) (*Model, error) {
	if f.Path == "" {
		data, err := f.Read()
		if err != nil {
			return nil, err
		}
		return newModel(Parse(f.Name, data))
	}
	return Open(f.Path)
}

// Open maps the file at path. Close must be called.
func Open(path string) (*Model, error) {
	f, m, err := mmap.Parsed(path, Parse)
	if err != nil {
		return nil, err
	}
	out, err := newModel(f, nil)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	out.mapping = m
	return out, nil
}

func newModel(f *File, err error) (*Model, error) {
	if err != nil {
		return nil, err
	}
	if len(f.Functions) == 0 {
		return nil, &frontend.Error{File: f.Name, Offset: -1, Reason: "it has no function"}
	}
	m := &Model{File: f}
	for i := range f.Functions {
		// Where it would have changed something.
		of := &f.Functions[i]
		if gpu := slices.ContainsFunc(of.Nodes, func(n Node) bool { return n.GPU }); !gpu && len(of.Nodes) >= maxFused {
			m.remarks = append(m.remarks, fmt.Sprintf("it was traced on a CPU, where norms, rotations and attention fall into pieces (%d primitives): export it on a Mac, with mx.set_default_device(mx.gpu), which records each of them as one", len(of.Nodes)))
			break
		}
	}
	return m, nil
}

// Traces returns how many traces the file has.
func (m *Model) Traces() int { return len(m.Functions) }

// Close releases the file.
func (m *Model) Close() error {
	var all []error
	for _, f := range m.weights {
		all = append(all, f.Close())
	}
	m.weights = nil
	if m.mapping != nil {
		all = append(all, m.mapping.Close())
	}
	return errors.Join(all...)
}

// Tokenizer returns an error: functions have none.
func (m *Model) Tokenizer() (*tokenizer.Spec, error) {
	return nil, fmt.Errorf("%s is a function, which has no tokenizer", m.Name)
}

// Context returns 0: a function has no positions that anybody knows.
func (m *Model) Context() int64 { return 0 }

// maxFused is from how many primitives on it is remarked that a trace was made on a CPU.
const maxFused = 8

// Remarks say how the file could have been exported better and, once it is recorded, what of it was left out.
func (m *Model) Remarks() []string { return slices.Clone(m.remarks) }

// signature is how a function is called, for messages.
func (f *Function) signature() string {
	var parts []string
	for i, v := range f.Inputs {
		name := fmt.Sprintf("arg%d", i)
		if k := i - f.Positional(); k >= 0 {
			name = f.Keywords[k]
		}
		parts = append(parts, frontend.Name(name)+" "+f.Values[v].String())
	}
	return "(" + frontend.Few(parts, ", ") + ")"
}

// Function returns the function of a number, counted from 1. 0 is the only one there is.
func (m *Model) Function(number int) (*Function, error) {
	if number == 0 && m.Traces() == 1 {
		number = 1
	}
	if number >= 1 && number <= m.Traces() {
		return &m.Functions[number-1], nil
	}
	var all []string
	for i := range m.Functions {
		all = append(all, fmt.Sprintf("%d %s", i+1, m.Functions[i].signature()))
	}
	what := fmt.Sprintf("there is no function %d", number)
	if number == 0 {
		what = "it has several traces"
	}
	return nil, fmt.Errorf("%s: choose one (--function N) of %s", what, frontend.Few(all, ", "))
}

// Pair says that a result is what an argument is in the next run.
type pair struct {
	input, output int
}

// names are the names of the inputs and outputs of a function.
func (f *Function) names() (in, out []string) {
	for i := range f.Inputs {
		in = append(in, fmt.Sprintf("arg%d", i))
	}
	for i, k := range f.Keywords {
		in[f.Positional()+i] = k
	}
	for i := range f.Outputs {
		out = append(out, fmt.Sprintf("out%d", i))
	}
	return in, out
}

// pairs are the states of a function: those that are given, and those that are found.
func (f *Function) pairs(o *frontend.Traced) (out []pair, err error) {
	inputs, outputs := f.names()
	taken := func(p pair) bool {
		return slices.ContainsFunc(out, func(q pair) bool {
			return q.input == p.input || q.output == p.output || f.Inputs[q.input] == f.Inputs[p.input]
		})
	}
	for _, s := range o.States {
		p := pair{slices.Index(inputs, s.In), slices.Index(outputs, s.Out)}
		switch {
		case p.input < 0:
			return nil, fmt.Errorf("--state %s=%s: there is no argument %s, but %s", s.In, s.Out, s.In, frontend.Few(inputs, ", "))
		case p.output < 0:
			return nil, fmt.Errorf("--state %s=%s: there is no result %s, but %s", s.In, s.Out, s.Out, frontend.Few(outputs, ", "))
		case taken(p):
			return nil, fmt.Errorf("--state %s=%s: one of them is of another state already", s.In, s.Out)
		}
		a, b := f.Values[f.Inputs[p.input]], f.Values[f.Outputs[p.output]]
		if a.Type != b.Type || !slices.Equal(a.Shape, b.Shape) {
			return nil, fmt.Errorf("--state %s=%s: the argument is %s, the result %s", s.In, s.Out, a, b)
		}
		out = append(out, p)
	}
	if o.NoStates {
		return out, nil
	}
	for j, v := range f.Outputs {
		for i, of := range f.Inputs {
			p := pair{i, j}
			if chain := f.updates(v, of); len(chain) > 1 && !taken(p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// updates returns the values from an input to what is made of it by updates of slices alone, in order; nil if it is not.
func (f *Function) updates(from, to int) []int {
	made := f.producers()
	chain := []int{from}
	for v := from; v != to; {
		n, ok := made[v]
		if !ok || n.Name != "DynamicSliceUpdate" && n.Name != "SliceUpdate" || len(n.In) < 2 {
			return nil
		}
		v = n.In[0]
		chain = append(chain, v)
	}
	slices.Reverse(chain)
	return chain
}

func (f *Function) producers() map[int]*Node {
	made := map[int]*Node{}
	for i := range f.Nodes {
		for _, v := range f.Nodes[i].Out {
			made[v] = &f.Nodes[i]
		}
	}
	return made
}

// Record returns a module with one graph, which is called as the function's number, or "function".
func (m *Model) Record(ctx context.Context, o frontend.Options) (*ir.Module, error) {
	t := o.Traced
	if t == nil {
		t = &frontend.Traced{}
	}
	if o.External != "" {
		return nil, errors.New("the constants of a function lie anywhere in its file: leave out --external")
	}
	if given := o.Context != 0 || o.Prefill != 0 || o.Draft != 0 || o.Type != ir.Invalid || o.Cache != ir.Invalid || o.Sample; given {
		return nil, errors.New("a function has the types and shapes with which it was exported: leave out --context, --prefill, --draft, --type, --cache and --sample")
	}
	f, err := m.Function(t.Function)
	if err != nil {
		return nil, err
	}
	pairs, err := f.pairs(t)
	if err != nil {
		return nil, err
	}
	var weights *safetensors.File
	if t.Weights != "" {
		if weights, err = safetensors.Open(t.Weights); err != nil {
			return nil, err
		}
		m.weights = append(m.weights, weights)
	}
	d := frontend.NewDigests(o)
	r := &recording{Model: m, fn: f, o: t, d: d, pairs: pairs, blobs: map[int64]*ir.Blob{}}
	if err := r.bind(weights); err != nil {
		return nil, err
	}
	// Contents are named by their digests before anything compares them.
	if err := d.Compute(ctx); err != nil {
		return nil, err
	}
	g, err := r.graph(ctx)
	if err != nil {
		return nil, err
	}
	return &ir.Module{Graphs: []*ir.Graph{g}}, nil
}

// recording is a function that is recorded.
type recording struct {
	*Model
	fn    *Function
	o     *frontend.Traced
	d     *frontend.Digests
	pairs []pair
	blobs map[int64]*ir.Blob // of constants, by their offsets
	bound map[int]*ir.Blob   // of inputs that have contents
}

// bind gives contents to constants, and to keywords from a file of weights.
func (r *recording) bind(weights *safetensors.File) error {
	r.bound = map[int]*ir.Blob{}
	for _, v := range sortedKeys(r.fn.Constant) {
		c := r.fn.Constant[v]
		if c.Length == 0 || r.blobs[c.Offset] != nil {
			continue
		}
		r.blobs[c.Offset] = r.contents(r.Name, c.Offset, r.data[c.Offset:c.Offset+c.Length])
	}
	if weights == nil {
		return nil
	}
	var wrong, missing []string
	used := 0
	for i, name := range r.fn.Keywords {
		v := r.fn.Inputs[r.fn.Positional()+i]
		at := slices.IndexFunc(weights.Tensors, func(t safetensors.Tensor) bool { return t.Name == name })
		if at < 0 {
			missing = append(missing, frontend.Name(name))
			continue
		}
		t, a := weights.Tensors[at], r.fn.Values[v]
		if t.Type != a.Type.Ours() || !slices.Equal(t.Shape, a.Shape) {
			wrong = append(wrong, fmt.Sprintf("%s is %s%v, the function takes %s", frontend.Name(name), t.Type, t.Shape, a))
			continue
		}
		used++
		r.bound[v] = r.contents(weights.Name, t.Offset, weights.Data(t))
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s: %w", weights.Name, frontend.Faults(wrong))
	}
	if used == 0 {
		return fmt.Errorf("%s: none of its tensors is a keyword of the function, whose arguments are %s", weights.Name, r.fn.signature())
	}
	if len(missing) > 0 {
		r.remarks = append(r.remarks, fmt.Sprintf("%s has no %s: they stay inputs", weights.Name, frontend.Few(missing, ", ")))
	}
	return nil
}

// contents returns a blob of what lies at an offset of the file. What kernels load lies at a multiple of its size.
func (r *recording) contents(name string, offset int64, data []byte) *ir.Blob {
	if offset%16 == 0 && r.d.Refer {
		return r.d.Mapped(name, offset, data)
	}
	what := fmt.Sprintf("%d bytes at %d of %q", len(data), offset, name)
	return r.d.Made(what, int64(len(data)), func(dst []byte, at int64) { copy(dst, data[at:]) })
}

func sortedKeys[V any](m map[int]V) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// graph records the function.
func (r *recording) graph(ctx context.Context) (*ir.Graph, error) {
	f := r.fn
	var with []record.Setting
	if r.o.Compiled != nil {
		with = append(with, record.Compiled(r.o.Compiled))
	}
	l := &lowering{fn: f, values: make([]value, len(f.Values)), uses: make([]int, len(f.Values)), inPlace: map[int]bool{}, compiled: r.o.Compiled != nil, source: r.o.Source}
	l.again = func() *record.Session { return record.New("function", with...) }
	l.s = l.again()
	l.m = l.s.MLX()
	l.s.SetContext(ctx)
	for _, n := range f.Nodes {
		for _, v := range n.In {
			l.uses[v]++
		}
	}
	for _, v := range f.Outputs {
		l.uses[v]++
	}
	inputs, outputs := f.names()
	r.declare(l, inputs)
	r.aim(l, outputs)
	for i := range f.Nodes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.node(&f.Nodes[i])
	}
	if faults := l.faults.list(); len(faults) > 0 {
		return nil, fmt.Errorf("it cannot be recorded: %w", frontend.Faults(faults))
	}
	if err := r.finish(l, inputs, outputs); err != nil {
		return nil, err
	}
	return l.s.Graph()
}

// aim declares results, and says which value is made into the memory of each: the result, or what it is another shape of.
func (r *recording) aim(l *lowering, outputs []string) {
	f := r.fn
	made := f.producers()
	l.targets = map[int]record.Tensor{}
	for j, v := range f.Outputs {
		a := f.Values[v]
		if slices.ContainsFunc(r.pairs, func(p pair) bool { return p.output == j }) || a.Type.Ours() == ir.Invalid || a.elements() == 0 {
			continue
		}
		to := flat(l.s.Output(outputs[j], a.Type.Ours(), a.Shape...), sizes(a.Shape)...)
		for n := made[v]; n != nil; n = made[v] {
			of := f.Values[n.first()]
			if !reshapes[n.Name] || of.elements() != a.elements() || of.Type != a.Type {
				if _, taken := l.targets[v]; !taken {
					l.targets[v] = to
				}
				break
			}
			v = n.In[0]
		}
	}
}

// reshapes are the primitives that give the elements of an operand, if as many, in their order.
var reshapes = map[string]bool{"Reshape": true, "Flatten": true, "Unflatten": true, "ExpandDims": true, "Squeeze": true, "Slice": true, "Copy": true, "StopGradient": true, "Broadcast": true}

// first returns the first operand; 0 if there is none, which is a value of every function that has primitives.
func (n *Node) first() int {
	if len(n.In) == 0 {
		return 0
	}
	return n.In[0]
}

// declare gives memory to inputs, states and constants.
func (r *recording) declare(l *lowering, inputs []string) {
	f := r.fn
	states := map[int]pair{}
	for _, p := range r.pairs {
		states[f.Inputs[p.input]] = p
		l.mark(f.updates(f.Outputs[p.output], f.Inputs[p.input]))
	}
	for i, v := range f.Inputs {
		a := f.Values[v]
		t := a.Type.Ours()
		x := value{shape: a.Shape, typ: t}
		_, state := states[v]
		switch {
		case l.values[v].has: // one array is passed twice
			continue
		case t == ir.Invalid || a.elements() == 0:
			l.values[v] = x
			if l.uses[v] > 0 {
				l.faults.add(fmt.Sprintf("the argument %s is %s, which graphs do not have", inputs[i], a), "an input")
				l.values[v].lost = true
			}
			continue
		case r.bound[v] != nil:
			x.t = l.s.Weight(inputs[i], r.bound[v], t, a.Shape...)
		case state:
			x.t = l.s.State(inputs[i], t, a.Shape...)
		case l.uses[v] == 0:
			r.remarks = append(r.remarks, fmt.Sprintf("no result depends on the argument %s, so the graph does not have it", inputs[i]))
			continue
		default:
			x.t = l.s.Input(inputs[i], t, a.Shape...)
		}
		x.t, x.has = flat(x.t, sizes(a.Shape)...), true
		l.values[v] = x
	}
	for _, v := range sortedKeys(f.Constant) {
		a, c := f.Values[v], f.Constant[v]
		t := a.Type.Ours()
		x := value{shape: a.Shape, typ: t}
		switch {
		case t == ir.Invalid || a.elements() == 0: // said where it is used
		case a.elements() == 1 && (t.Float() || t.Size() == 4 || t == ir.Bool):
			x.uniform, x.number = true, numberOf(t, r.data[c.Offset:c.Offset+c.Length])
		default:
			x.t = flat(l.s.Weight(fmt.Sprintf("constant%d", v), r.blobs[c.Offset], t, a.Shape...), sizes(a.Shape)...)
			x.has = true
		}
		l.values[v] = x
	}
}

// numberOf is the number that the bytes of one element are.
func numberOf(t ir.DType, data []byte) float64 {
	switch {
	case t.Float():
		return float64(record.Numbers(t, data)[0])
	case t == ir.Bool:
		if data[0] != 0 {
			return 1
		}
		return 0
	}
	v := uint32(data[0]) | uint32(data[1])<<8 | uint32(data[2])<<16 | uint32(data[3])<<24
	if t == ir.I32 {
		return float64(int32(v))
	}
	return float64(v)
}

// mark says which of a chain of updates may change the memory of the one before: all, as long as nothing else needs it.
func (l *lowering) mark(chain []int) {
	for i, v := range chain {
		if i == len(chain)-1 || l.uses[v] != 1 {
			return
		}
		l.inPlace[v] = true
	}
}

// finish copies results to where the host reads them, and states to where the next run reads them.
func (r *recording) finish(l *lowering, inputs, outputs []string) error {
	f := r.fn
	states := map[int]int{} // outputs to inputs
	for _, p := range r.pairs {
		states[p.output] = p.input
	}
	type copying struct{ to, from record.Tensor }
	var later []copying
	for j, v := range f.Outputs {
		a := f.Values[v]
		x := l.values[v]
		if a.Type.Ours() == ir.Invalid || a.elements() == 0 {
			l.faults.add(fmt.Sprintf("the result %s is %s, which graphs do not have", outputs[j], a), "an output")
			continue
		}
		from := l.tensor(x)
		if i, ok := states[j]; ok {
			to := l.values[f.Inputs[i]].t
			if from.Mem == to.Mem && from.Off.Equal(to.Off) && contiguous(from) {
				continue // it is there already
			}
			// The state may be what another result is a view of.
			later = append(later, copying{to, from})
			continue
		}
		l.complaint = nil
		to := flat(l.s.Output(outputs[j], a.Type.Ours(), a.Shape...), sizes(a.Shape)...)
		if from.Mem == to.Mem {
			if from.Off.Equal(to.Off) && contiguous(from) {
				continue // it was made there
			}
			s := l.s.Scratch(from.DType, from.Shape...) // in another order
			l.copyTo(s, from)
			from = s
		}
		l.copyTo(to, from)
		if l.complaint != nil {
			l.faults.add(fmt.Sprintf("the result %s: %v", outputs[j], l.complaint), "an output")
		}
	}
	for i, c := range later {
		// One that is a view of a state that is written first is copied before.
		if slices.ContainsFunc(later[:i], func(o copying) bool { return o.to.Mem == c.from.Mem }) || c.from.Mem == c.to.Mem {
			s := l.s.Scratch(c.from.DType, c.from.Shape...)
			l.copyTo(s, c.from)
			later[i].from = s
		}
	}
	for _, c := range later {
		l.copyTo(c.to, c.from)
	}
	if faults := l.faults.list(); len(faults) > 0 {
		return fmt.Errorf("it cannot be recorded: %w", frontend.Faults(faults))
	}
	return nil
}
