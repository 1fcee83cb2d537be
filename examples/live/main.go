// Command live is a small engine for Metal that can be developed without a Mac. It runs a recurrent
// network, token by token, on software Metal. It uses operations of the library, and a kernel of
// its own, best.metal, which picks the next token.
//
//	go run ./examples/live                             # 12 tokens
//	go run ./examples/live -check                      # the same under the checker
//	go run ./examples/live -check -break               # without a needed barrier, which the checker finds
//	go run ./examples/live -library mlx.metallib       # operations by MLX's compiled kernels
//
// It uses only public packages, and needs clang.
package main

import (
	"context"
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

//go:embed best.metal
var source string

func main() {
	var o options
	flag.BoolVar(&o.check, "check", false, "run under the checker")
	flag.BoolVar(&o.broken, "break", false, "take the barrier out of the engine's kernel")
	flag.StringVar(&o.library, "library", "", "take operations from this .metallib")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "live:", err)
		os.Exit(1)
	}
}

type options struct {
	check, broken bool
	library       string
}

const (
	vocabulary = 640
	width      = 256
	tokens     = 12
)

func run(ctx context.Context, w io.Writer, o options) error {
	// An engine has its kernels in files.
	dir, err := os.MkdirTemp("", "live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text := source
	if o.broken {
		text = strings.Replace(text, "  threadgroup_barrier(mem_flags::mem_threadgroup);\n", "\n", 1)
	}
	path := filepath.Join(dir, "best.metal")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	d, err := softmetal.New(ctx, softmetal.Options{Check: o.check, Library: o.library})
	if err != nil {
		return err
	}
	defer d.Close()
	s := record.New("live", record.Live(d))
	defer s.Close()

	token, findings := uint32(1), 0
	for range tokens {
		logits, err := step(s, path, token)
		if err != nil {
			return err
		}
		next := make([]byte, 4)
		if err := s.Read(s.Output("token", ir.U32, 1), next); err != nil {
			return err
		}
		for _, dispatch := range d.Observed() {
			for _, f := range dispatch.Findings {
				fmt.Fprintf(w, "#%d %s: %v: %v\n", dispatch.Command, f.Kernel, f.Kind, &f)
				findings++
			}
		}
		token = binary.LittleEndian.Uint32(next)
		if want := greatest(logits); token != want {
			return fmt.Errorf("the kernel says token %d, and the greatest logit is that of %d", token, want)
		}
		fmt.Fprint(w, token, " ")
	}
	fmt.Fprintln(w)
	if o.check {
		fmt.Fprintf(w, "%d findings\n", findings)
	}
	return nil
}

// step runs the network for one token and returns the logits of the next one:
//
//	h = rms_norm(h + embedding[token]·w),  logits = h·embeddingᵀ
func step(s *record.Session, path string, token uint32) ([]float32, error) {
	random := func(seed uint64) ir.Init { return ir.Init{Kind: ir.InitRandom, Seed: seed} }
	embedding := s.StateFrom("embedding", random(1), ir.F32, vocabulary, width)
	w := s.StateFrom("w", random(2), ir.F32, width, width)
	h := s.State("h", ir.F32, 1, width)
	id := s.Input("id", ir.U32, 1)
	logits := s.Output("logits", ir.F32, 1, vocabulary)
	next := s.Output("token", ir.U32, 1)
	if err := s.Write(id, binary.LittleEndian.AppendUint32(nil, token)); err != nil {
		return nil, err
	}

	x := s.Embed(id, record.Dense(embedding))
	s.RMSNorm(s.Add(h, s.Matmul(x, record.Dense(w))), 1e-5, record.Into(h))
	s.Matmul(h, record.Dense(embedding), record.Into(logits))
	best := s.Kernel(ir.Kernel{
		Name: "best", Function: "best", Library: ir.Library{Kind: ir.SourceFile, Path: path},
		Args: []ir.Arg{
			{Slot: 0, Name: "x", Access: ir.ReadArg, Type: ir.F32},
			{Slot: 1, Name: "place", Access: ir.WriteArg, Type: ir.U32},
			{Slot: 2, Name: "n", Kind: ir.ConstantArg, Type: ir.U32, Count: 1},
		},
	})
	s.Dispatch(best).Buffer(0, logits).Buffer(1, next).Uint32(2, vocabulary).
		Reads(logits).Writes(next).Threads(record.Size(256), [3]uint32{256, 1, 1})
	if _, err := s.Finish(); err != nil {
		return nil, err
	}
	data := make([]byte, 4*vocabulary)
	if err := s.Read(logits, data); err != nil {
		return nil, err
	}
	out := make([]float32, vocabulary)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// greatest computes what best.metal computes: the index of the max.
func greatest(x []float32) uint32 {
	at := 0
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return uint32(at)
}
