package mlxc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/inputs"
	"github.com/mlxc/mlxc/internal/analysis/meaning"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// libraryFlags name compiled libraries that hold kernels of a graph.
type libraryFlags struct {
	Library []string `placeholder:"FILE" help:"Compiled Metal library (.metallib) that kernels of the graph are in, such as MLX's: compare what the graph binds with what they want (docs/metallib.md). Repeatable."`

	open []*openLibrary
}

type openLibrary struct {
	*inputs.Library
	path   string
	digest ir.Digest // of the file, computed when first needed
	hashed bool
	named  bool // some graph names the library
}

// openAll opens the libraries, and reads all of them if whole is set.
func (f *libraryFlags) openAll(ctx context.Context, whole bool) error {
	for _, path := range f.Library {
		lib, err := inputs.OpenLibrary(path)
		if err != nil {
			return fmt.Errorf("--library: %w", err)
		}
		f.open = append(f.open, &openLibrary{Library: lib, path: path})
		if whole {
			if err := lib.Verify(ctx); err != nil {
				return fmt.Errorf("--library: %w", err)
			}
		}
	}
	return nil
}

func (f *libraryFlags) close() {
	for _, l := range f.open {
		l.Close()
	}
}

// find returns the library that a kernel names: by digest or, if the graph has no digest, by file name. A builtin
// kernel that is declared to equal MLX's is compared with the kernel of a library that has one of its name.
func (f *libraryFlags) find(k *ir.Kernel) bind.Library {
	at := f.lookup(&k.Library)
	if k.Library.Kind == ir.Builtin && slices.ContainsFunc(msl.Declarations(k.Function), func(d *decl.Decl) bool { return d.MLX }) {
		for _, o := range f.open {
			if _, err := o.Kernel(k.Function); err == nil {
				at = o
				break
			}
		}
	}
	if at == nil {
		return nil
	}
	at.named = true
	return at
}

func (f *libraryFlags) lookup(l *ir.Library) *openLibrary {
	if l.Kind != ir.Metallib {
		return nil
	}
	for _, o := range f.open {
		if l.Digest == (ir.Digest{}) {
			if filepath.Base(o.path) == filepath.Base(l.Path) {
				return o
			}
			continue
		}
		if !o.hashed {
			o.digest, o.hashed = sha256.Sum256(o.Data), true
		}
		if o.digest == l.Digest {
			return o
		}
	}
	return nil
}

// others returns complaints about kernels of a graph that name one of the libraries by its file name, but with
// another digest.
func (f *libraryFlags) others(g *ir.Graph) (out []string) {
	seen := map[ir.Library]bool{}
	for i := range g.Kernels {
		l := &g.Kernels[i].Library
		if l.Kind != ir.Metallib || seen[*l] || f.lookup(l) != nil {
			continue
		}
		seen[*l] = true
		for _, o := range f.open {
			if filepath.Base(o.path) == filepath.Base(l.Path) {
				out = append(out, fmt.Sprintf("kernel @%s: library %q has the digest %s, %s has %s: it is another file", ir.QuoteName(g.Kernels[i].Name), l.Path, l.Digest, cli.Quote(o.path), o.digest))
			}
		}
	}
	return out
}

// compare notes where the graph and the compiled kernels contradict each other.
func (f *libraryFlags) compare(ctx context.Context, v *verdict, g *ir.Graph, strict bool) error {
	if len(f.open) == 0 {
		return nil
	}
	at := fmt.Sprintf("graph %s: ", ir.QuoteName(g.Name))
	for _, line := range f.others(g) {
		v.Errors = append(v.Errors, at+line)
	}
	r, err := bind.Check(ctx, g, f.find)
	if err != nil {
		return err
	}
	for _, x := range r.Faults {
		v.Errors = append(v.Errors, x.String())
	}
	doubts := &v.Unknown
	if strict {
		doubts = &v.Errors
	}
	for _, x := range r.Doubts {
		*doubts = append(*doubts, x.String())
	}
	if r.More > 0 {
		*doubts = append(*doubts, fmt.Sprintf("%s%d more like these", at, r.More))
	}
	if r.Dispatches == 0 || len(r.Faults) > 0 {
		return nil
	}
	v.Unknown = append(v.Unknown, fmt.Sprintf("%s%d dispatch(es) bind what compiled kernels want", at, r.Dispatches))
	return nil
}

// narrow removes assumptions that dispatches of unknown effects do not race, where the arguments of the compiled
// kernels show that two commands touch no common byte. Nothing else is concluded from these arguments, because they
// do not say which bytes are certainly written.
func (f *libraryFlags) narrow(ctx context.Context, g *ir.Graph, found *meaning.Report) error {
	if len(f.open) == 0 || len(found.Assumed) == 0 {
		return nil
	}
	h := g.Clone()
	n, err := bind.Bound(ctx, h, f.find)
	if err != nil || n == 0 {
		return err
	}
	r, err := meaning.Of(ctx, h)
	if err != nil {
		return err
	}
	assumed := r.Assumed
	for _, x := range r.Faults {
		if x.Kind == "race" && !slices.ContainsFunc(found.Faults, func(y meaning.Fault) bool { return x.Text == y.Text }) {
			assumed = append(assumed, "the recording is race-free although, by the arguments of compiled kernels, "+x.Text)
		}
	}
	for _, x := range r.Unsure {
		if !slices.Contains(found.Unsure, x) {
			assumed = append(assumed, "the recording is race-free although "+x)
		}
	}
	found.Assumed = assumed
	return nil
}

// unnamed adds a finding for each library that no graph names.
func (f *libraryFlags) unnamed(v *verdict) {
	for _, o := range f.open {
		if !o.named {
			v.Unknown = append(v.Unknown, fmt.Sprintf("no kernel of the graphs is in %s", cli.Quote(o.path)))
		}
	}
}
