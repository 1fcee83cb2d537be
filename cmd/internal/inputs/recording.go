package inputs

import (
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/ir"
)

// Recording has the flags that say how a model is recorded.
type Recording struct {
	Context int64  `placeholder:"N" help:"Positions of the KV cache of a model that is recorded (default: the model's, at most 2048)."`
	Prefill int64  `placeholder:"N" help:"Most tokens of one prefill of a model that is recorded (default: 128)."`
	Type    string `enum:"f32,f16,bf16,auto" default:"auto" help:"Type of activations, norms, scales and biases of a model that is recorded: f32, f16 or bf16; auto is f32, but of a folder the type of its norms."`
	Cache   string `enum:"f32,f16,bf16,q8_0,auto" default:"auto" help:"Type of the KV cache of a model that is recorded: auto, that of activations; f16 beside activations of f32, in half the memory; or q8_0, codes of 8 bits with a scale for each 32, in 17 of 64 bytes of f32."`
	Blocks  *bool  `negatable:"" help:"Leave quantized weights of a model that is recorded in the blocks of its file, those too that can be repacked into what kernels for GPUs are faster with (of a GGUF file Q4_0, Q4_1 and Q8_0). Default: repack, but for the device cpu leave them, so that the weights stay in the mapped file."`
}

// Options returns the options of a recording. blocks is the default of Blocks.
func (r *Recording) Options(blocks bool) (o frontend.Options, err error) {
	for _, t := range []struct {
		text string
		to   *ir.DType
	}{{r.Type, &o.Type}, {r.Cache, &o.Cache}} {
		switch t.text {
		case "auto":
		case "q8_0":
			*t.to = ir.I8
		default:
			if *t.to, err = ir.ParseDType(t.text); err != nil {
				return o, err
			}
		}
	}
	if r.Blocks != nil {
		blocks = *r.Blocks
	}
	o.Context, o.Prefill, o.Blocks, o.Mapped = r.Context, r.Prefill, blocks, true
	return o, nil
}

// Unused returns an error if a flag was given, for an input that has been recorded already.
func (r *Recording) Unused(name string) error {
	var given []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"--context", r.Context != 0}, {"--prefill", r.Prefill != 0}, {"--type", r.Type != "auto"}, {"--cache", r.Cache != "auto"}, {"--blocks", r.Blocks != nil}} {
		if f.set {
			given = append(given, f.name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return cli.BadUsage("%s: this is for a model that is recorded here, but %s is a graph, which mlxc record has made (mlxc record has these flags too)", strings.Join(given, ", "), cli.Quote(name))
}
