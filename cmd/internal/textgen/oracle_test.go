package textgen_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/textgen"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
	"github.com/mlxc/mlxc/tokenizer/chat"
)

// run is one run of llama.cpp over the demonstration model's weights as f32
// (testdata/gen/smollm2_oracle.py).
type run struct {
	Name         string
	Prompt       string
	Messages     []chat.Message
	ParseSpecial bool           `json:"parse_special"`
	PromptIDs    []int32        `json:"prompt_ids"`
	IDs          []int32        `json:"ids"`
	Top          [][][2]float64 `json:"top"` // steps × 20 × (id, logit)
}

func oracle(t *testing.T) []run {
	raw, err := os.ReadFile("../../../testdata/model-oracle/smollm2.json")
	require.NoError(t, err)
	var o struct{ Runs []run }
	require.NoError(t, json.Unmarshal(raw, &o))
	require.Len(t, o.Runs, 9)
	return o.Runs
}

// recordModel returns the demonstration model's module, optimized or as recorded.
func recordModel(t *testing.T, optimize bool) *ir.Module {
	module := recorded(t, frontend.Options{Context: 256})
	if optimize {
		for _, g := range module.Graphs {
			_, err := passes.Run(context.Background(), g, passes.DefaultPipeline(), passes.Options{})
			require.NoError(t, err)
		}
	}
	return module
}

// recordAdvancing returns a module whose decode graph carries its token to the next
// replay.
func recordAdvancing(t *testing.T) *ir.Module {
	return recorded(t, frontend.Options{Context: 256, Advance: true})
}

func recorded(t *testing.T, o frontend.Options) *ir.Module {
	module, err := demonstration(t).Record(context.Background(), o)
	require.NoError(t, err)
	return module
}

// demonstration opens the demonstration model.
func demonstration(t *testing.T) *gguf.Model {
	path := os.Getenv("MODEL")
	if path == "" {
		path = "../../../testdata/model/SmolLM2-135M-Instruct.Q4_1.gguf"
	}
	m, err := gguf.Load(path)
	require.NoError(t, err, "the demonstration model is missing: run scripts/fetch-model.sh")
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func openModel(t *testing.T, module *ir.Module) *textgen.Model {
	d := cpu.New(0)
	m, err := textgen.Open(t.Context(), d, module, replay.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, d.Close())
	})
	return m
}

// tolerance bounds the difference between a logit and llama.cpp's: both are accumulated
// in f32, in different orders, over 30 layers.
const tolerance = 1e-3

// sameAs requires that a model generates a run's 48 tokens, with its top 20 logits at every step.
func sameAs(t *testing.T, m *textgen.Model, r run) {
	t.Helper()
	step, worst := 0, 0.0
	result, err := m.Generate(context.Background(), r.PromptIDs, textgen.Options{N: 48, IgnoreEnd: true, Logits: func(l []float32) {
		require.Len(t, r.Top[step], 20)
		for _, x := range r.Top[step] {
			worst = max(worst, math.Abs(float64(l[int(x[0])])-x[1]))
		}
		step++
	}})
	require.NoError(t, err)
	require.Equal(t, r.IDs, result.IDs)
	require.Equal(t, 48, step)
	require.Less(t, worst, tolerance, "greatest difference of a top-20 logit")
	t.Logf("greatest difference of a top-20 logit: %.1e", worst)
}

// Greedy tokens equal those of llama.cpp over the same weights, and the top 20
// logits of every step agree, for nine prompts of 48 tokens each.
func TestTokensAndLogitsAgainstLlamaCpp(t *testing.T) {
	sample.Long(t)
	m := openModel(t, recordModel(t, true))
	for _, r := range sample.Of(t, t.Name(), oracle(t), 2) {
		t.Run(r.Name, func(t *testing.T) {
			require.Len(t, r.IDs, 48)
			require.Equal(t, r.PromptIDs, m.Tokenizer.Encode(r.Prompt, r.ParseSpecial), "prompt tokens")
			sameAs(t, m, r)
		})
	}
}

// The prompt of a chat is what the model's own template makes of the messages.
func TestChatPrompts(t *testing.T) {
	m := openModel(t, recordModel(t, false))
	chats := 0
	for _, r := range oracle(t) {
		if r.Messages == nil {
			continue
		}
		chats++
		text, err := chat.Render(t.Context(), m.Tokenizer.ChatTemplate(), r.Messages, chat.Options{AddGenerationPrompt: true})
		require.NoError(t, err)
		require.Equal(t, r.Prompt, text)
	}
	require.Equal(t, 4, chats)
}

// The prefill graph, at once or in parts, and the decode graph token by token lead to
// the same tokens, and their logits differ only by rounding. The recorded and the
// optimized graphs agree bit for bit.
func TestPrefillAndDecodeAgree(t *testing.T) {
	prompt := oracle(t)[0].PromptIDs
	module := recordModel(t, false)
	first := func(m *textgen.Model) (logits []float32) {
		_, err := m.Generate(context.Background(), prompt, textgen.Options{N: 1, Logits: func(l []float32) { logits = append(logits, l...) }})
		require.NoError(t, err)
		return logits
	}
	whole := first(openModel(t, module))
	onlyDecode := &ir.Module{Graphs: module.Graphs[:1], Data: module.Data}
	single := first(openModel(t, onlyDecode))
	for i := range whole {
		require.InDelta(t, whole[i], single[i], tolerance, "logit %d", i)
	}
	require.Equal(t, whole, first(openModel(t, recordModel(t, true))))
}

func TestGenerateRefuses(t *testing.T) {
	m := openModel(t, recordModel(t, false))
	ctx := context.Background()
	for _, k := range []struct {
		prompt []int32
		o      textgen.Options
		want   string
	}{
		{nil, textgen.Options{N: 1}, "the prompt has no tokens"},
		{make([]int32, 257), textgen.Options{N: 1}, "the prompt has 257 tokens, the context 256 positions (mlxc record --context N makes a graph with N, up to what the model has)"},
		{[]int32{1, 49152}, textgen.Options{N: 1}, "prompt token 1 has the id 49152, the vocabulary has 49152"},
		{[]int32{1, -1}, textgen.Options{N: 1}, "prompt token 1 has the id -1, the vocabulary has 49152"},
		{[]int32{1}, textgen.Options{N: 1, Temp: math.NaN()}, "temperature NaN or top-p 1 makes no sense (want temperature ≥ 0, 0 < top-p ≤ 1)"},
		{[]int32{1}, textgen.Options{N: 1, TopP: 1.5}, "temperature 0 or top-p 1.5 makes no sense (want temperature ≥ 0, 0 < top-p ≤ 1)"},
		{[]int32{1}, textgen.Options{N: 1, MinP: 2}, "top-k 0, min-p 2 or a penalty of 0 for the last 0 tokens makes no sense (want top-k ≥ 0, 0 ≤ min-p ≤ 1, penalty ≥ 0, last ≥ -1)"},
	} {
		_, err := m.Generate(ctx, k.prompt, k.o)
		require.EqualError(t, err, k.want)
	}
	// The context's last position is used, and then generation stops.
	r, err := m.Generate(ctx, make([]int32, 250), textgen.Options{N: 100, IgnoreEnd: true})
	require.NoError(t, err)
	require.Equal(t, "context", r.Stopped)
	require.Len(t, r.IDs, 7)
}
