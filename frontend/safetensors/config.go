package safetensors

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/frontend/decoder"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// settings are the fields of config.json that decide what a model computes. Fields that are not read here do not change
// that, or only where training is concerned.
type settings struct {
	ModelType  string   `json:"model_type"`
	Hidden     int64    `json:"hidden_size"`
	Layers     int64    `json:"num_hidden_layers"`
	FFN        int64    `json:"intermediate_size"`
	Heads      int64    `json:"num_attention_heads"`
	KVHeads    int64    `json:"num_key_value_heads"`
	HeadDim    int64    `json:"head_dim"`
	Vocab      int64    `json:"vocab_size"`
	Context    int64    `json:"max_position_embeddings"`
	Eps        float32  `json:"rms_norm_eps"`
	Theta      float64  `json:"rope_theta"`
	Activation string   `json:"hidden_act"`
	Activates  string   `json:"hidden_activation"` // gemma's name for it, which counts
	Tied       *bool    `json:"tie_word_embeddings"`
	Partial    *float64 `json:"partial_rotary_factor"`
	Window     *int64   `json:"sliding_window"`
	UseWindow  *bool    `json:"use_sliding_window"`
	Pattern    *int64   `json:"sliding_window_pattern"` // every so many layers one has no window
	OldPattern *int64   `json:"_sliding_window_pattern"`
	NoWindows  *int64   `json:"max_window_layers"` // so many first layers have none
	LayerTypes []string `json:"layer_types"`
	EOS        ids      `json:"eos_token_id"`
	BOS        ids      `json:"bos_token_id"`

	Trained int64          `json:"original_max_position_embeddings"`
	Scaling map[string]any `json:"rope_scaling"`
	// Newer files have the base of rope among its parameters.
	Parameters map[string]any `json:"rope_parameters"`

	NoRopeLayers   []int64 `json:"no_rope_layers"` // smollm3: 0 where a layer has no rope
	NoRopeInterval int64   `json:"no_rope_layer_interval"`

	Experts     int64   `json:"num_experts"`
	Local       int64   `json:"num_local_experts"`
	GateLimit   float64 `json:"swiglu_limit"`
	UsedExperts int64   `json:"num_experts_per_tok"`
	ExpertFFN   int64   `json:"moe_intermediate_size"`
	SharedFFN   int64   `json:"shared_expert_intermediate_size"`
	SharedSize  int64   `json:"shared_intermediate_size"` // Granite's name for it
	SparseStep  *int64  `json:"decoder_sparse_step"`
	DenseLayers []int64 `json:"mlp_only_layers"`
	Normalized  bool    `json:"norm_topk_prob"`

	Positions      string  `json:"position_embedding_type"`
	EmbeddingScale float32 `json:"embedding_multiplier"`
	ResidualScale  float32 `json:"residual_multiplier"`
	AttentionScale float32 `json:"attention_multiplier"`
	LogitScale     float32 `json:"logits_scaling"`

	LocalTheta    *float64 `json:"rope_local_base_freq"`
	QueryScalar   float64  `json:"query_pre_attn_scalar"`
	AttentionCap  *float32 `json:"attn_logit_softcapping"`
	LogitCap      *float32 `json:"final_logit_softcapping"`
	Bidirectional any      `json:"use_bidirectional_attention"`

	Text         json.RawMessage `json:"text_config"` // settings of the language model of one of text and more
	Quantization json.RawMessage `json:"quantization"`
	Other        json.RawMessage `json:"quantization_config"` // of other quantizers, or MLX's again
}

// ids is one token or several.
type ids []int32

// UnmarshalJSON implements [json.Unmarshaler].
func (x *ids) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var one int32
	if json.Unmarshal(data, &one) == nil {
		*x = ids{one}
		return nil
	}
	return json.Unmarshal(data, (*[]int32)(x))
}

// architectures are the values of model_type, each with what it computes beside Llama's layers.
var architectures = map[string]func(s *settings, c *decoder.Config) error{
	"llama": func(s *settings, c *decoder.Config) error {
		if s.LayerTypes == nil {
			return nil
		}
		return s.window(c, nil)
	},
	"mistral": all,
	"qwen2":   behind,
	"qwen3": func(s *settings, c *decoder.Config) error {
		c.HeadNorms = true
		return behind(s, c)
	},
	"qwen3_moe": func(s *settings, c *decoder.Config) error {
		c.HeadNorms = true
		if err := s.qwenExperts(c); err != nil {
			return err
		}
		if s.UseWindow == nil {
			return nil
		}
		return all(s, c)
	},
	"qwen2_moe": func(s *settings, c *decoder.Config) error {
		c.SharedGate, c.SharedFFN = true, s.SharedFFN
		if c.SharedFFN < 1 || c.SharedFFN > 1<<20 {
			return fmt.Errorf("shared_expert_intermediate_size is %d", c.SharedFFN)
		}
		if err := s.qwenExperts(c); err != nil {
			return err
		}
		if s.UseWindow == nil || !*s.UseWindow {
			return nil
		}
		if s.LayerTypes == nil { // which layers they are was not always the same
			return fmt.Errorf("use_sliding_window without layer_types is not supported")
		}
		return all(s, c)
	},
	"mixtral": func(s *settings, c *decoder.Config) error {
		if err := s.localExperts(c); err != nil {
			return err
		}
		return all(s, c)
	},
	"phi3": all,
	"smollm3": func(s *settings, c *decoder.Config) error {
		if c.NoRope = s.NoRopeInterval; c.NoRope == 0 {
			c.NoRope = 4
		}
		for i, rotates := range s.NoRopeLayers {
			if (rotates == 0) != ((int64(i)+1)%c.NoRope == 0) {
				return fmt.Errorf("no_rope_layers: layer %d does not follow the interval %d", i, c.NoRope)
			}
		}
		return nil
	},
	"gemma2": func(s *settings, c *decoder.Config) error {
		windowed, err := s.every(c, 2)
		if err != nil {
			return err
		}
		if err := s.window(c, windowed); err != nil {
			return err
		}
		return gemma(s, c)
	},
	"gemma3_text": func(s *settings, c *decoder.Config) error {
		windowed, err := s.every(c, 6)
		if err != nil {
			return err
		}
		if err := s.window(c, windowed); err != nil {
			return err
		}
		c.HeadNorms, c.LocalTheta = true, 10000
		if s.LocalTheta != nil {
			c.LocalTheta = *s.LocalTheta
		}
		if !(c.LocalTheta > 1) || math.IsInf(c.LocalTheta, 0) {
			return fmt.Errorf("rope_local_base_freq is %v, want more than 1", c.LocalTheta)
		}
		if err := gemma(s, c); err != nil {
			return err
		}
		// This number, too, has the type of the weights there.
		c.EmbeddingScale = record.Numbers(ir.BF16, record.Elements(ir.BF16, []float32{c.EmbeddingScale}))[0]
		return nil
	},
	"gpt_oss": func(s *settings, c *decoder.Config) error {
		c.Sinks, c.ClampedGates = true, true
		if err := s.localExperts(c); err != nil {
			return err
		}
		if s.GateLimit != 0 && s.GateLimit != 7 {
			return fmt.Errorf("swiglu_limit %v is not supported, only 7 is", s.GateLimit)
		}
		if s.Window == nil {
			return fmt.Errorf("sliding_window is missing")
		}
		return s.window(c, decoder.EveryNth(c.Layers, 2))
	},
	"granite": granite,
	"granitemoe": func(s *settings, c *decoder.Config) error {
		if err := s.localExperts(c); err != nil {
			return err
		}
		return granite(s, c)
	},
	"granitemoeshared": func(s *settings, c *decoder.Config) error {
		if err := s.localExperts(c); err != nil {
			return err
		}
		if c.SharedFFN = s.SharedSize; c.SharedFFN < 0 || c.SharedFFN > 1<<20 {
			return fmt.Errorf("shared_intermediate_size is %d", c.SharedFFN)
		}
		return granite(s, c)
	},
	"granitemoehybrid": hybrid,
}

// hybrid is Granite 4 where all its layers have attention, with experts and a shared one, or neither.
func hybrid(s *settings, c *decoder.Config) error {
	for _, t := range s.LayerTypes {
		if t != "attention" {
			return fmt.Errorf("layer_types: %q is not supported, only attention is", t)
		}
	}
	if int64(len(s.LayerTypes)) != c.Layers {
		return fmt.Errorf("layer_types has %d layers of %d", len(s.LayerTypes), c.Layers)
	}
	switch s.Positions {
	case "rope":
	case "nope":
		c.NoRope = 1
	default:
		return fmt.Errorf("position_embedding_type %q is not supported, rope and nope are", s.Positions)
	}
	if s.SharedSize < 1 || s.SharedSize > 1<<20 {
		return fmt.Errorf("shared_intermediate_size is %d", s.SharedSize)
	}
	if s.Local == 0 {
		c.FFN = s.SharedSize
		return granite(s, c)
	}
	c.SharedFFN = s.SharedSize
	if err := s.localExperts(c); err != nil {
		return err
	}
	return granite(s, c)
}

// granite reads the four factors by which Granite differs from Llama.
func granite(s *settings, c *decoder.Config) error {
	c.EmbeddingScale, c.ResidualScale, c.AttentionScale, c.LogitScale = s.EmbeddingScale, s.ResidualScale, s.AttentionScale, s.LogitScale
	if c.LogitScale == 0 {
		return fmt.Errorf("logits_scaling is missing or 0: logits are divided by it")
	}
	return nil
}

// qwenExperts reads the experts of Qwen's models, which say how wide one is.
func (s *settings) qwenExperts(c *decoder.Config) error {
	c.AllShares = !s.Normalized
	if len(s.DenseLayers) > 0 || s.SparseStep != nil && *s.SparseStep != 1 {
		return fmt.Errorf("layers without experts (mlp_only_layers, decoder_sparse_step) are not supported")
	}
	return s.experts(c, "num_experts", s.Experts, "moe_intermediate_size", s.ExpertFFN)
}

// localExperts reads the experts of models that have no other feed-forward layers to tell them from.
func (s *settings) localExperts(c *decoder.Config) error {
	return s.experts(c, "num_local_experts", s.Local, "intermediate_size", c.FFN)
}

// experts reads a mixture of so many experts of such a width, which stand under these keys.
func (s *settings) experts(c *decoder.Config, keyOfMany string, many int64, keyOfWidth string, width int64) error {
	c.Experts, c.UsedExperts, c.ExpertFFN = many, s.UsedExperts, width
	if many < 1 || many > 1<<12 || c.UsedExperts < 1 || c.UsedExperts > many || width < 1 || width > 1<<20 {
		return fmt.Errorf("num_experts_per_tok is %d, %s %d, %s %d", c.UsedExperts, keyOfMany, many, keyOfWidth, width)
	}
	return nil
}

// all says that every layer has the window, unless layer_types says otherwise.
func all(s *settings, c *decoder.Config) error { return s.window(c, nil) }

// behind is all for models that have no window unless they say so, and say how many of their first layers have none.
func behind(s *settings, c *decoder.Config) error {
	if s.UseWindow == nil {
		return nil
	}
	first := c.Layers
	if s.NoWindows != nil {
		first = *s.NoWindows
	}
	windowed := make([]bool, c.Layers)
	for i := range windowed {
		windowed[i] = int64(i) >= first
	}
	return s.window(c, windowed)
}

// window reads the window of attention, and which layers have it: those that layer_types names, else those given (nil: all).
func (s *settings) window(c *decoder.Config, windowed []bool) error {
	if s.Window == nil || s.UseWindow != nil && !*s.UseWindow {
		return nil
	}
	if *s.Window < 1 || *s.Window > math.MaxInt32 {
		return fmt.Errorf("sliding_window is %d", *s.Window)
	}
	c.Window, c.Windowed = *s.Window, windowed
	if s.LayerTypes == nil {
		return nil
	}
	if int64(len(s.LayerTypes)) != c.Layers {
		return fmt.Errorf("layer_types has %d layers of %d", len(s.LayerTypes), c.Layers)
	}
	c.Windowed = make([]bool, c.Layers)
	for i, t := range s.LayerTypes {
		if t != "sliding_attention" && t != "full_attention" {
			return fmt.Errorf("layer_types: %q is not supported, sliding_attention and full_attention are", t)
		}
		c.Windowed[i] = t == "sliding_attention"
	}
	return nil
}

// gemma is what the models of Gemma have. Their norms are stored without the 1 that is added to them.
func gemma(s *settings, c *decoder.Config) error {
	c.PostNorms, c.GeluGates = true, true
	c.EmbeddingScale = float32(math.Sqrt(float64(c.Embedding)))
	if !(s.QueryScalar > 0) || math.IsInf(s.QueryScalar, 0) {
		return fmt.Errorf("query_pre_attn_scalar is %v", s.QueryScalar)
	}
	c.AttentionScale = float32(1 / math.Sqrt(s.QueryScalar))
	if s.Window == nil {
		return fmt.Errorf("sliding_window is missing")
	}
	if c.LocalTheta != 0 && (c.RopePeriods != nil || c.RopeMagnitude != 0 || c.RopeDims != 0) {
		return fmt.Errorf("rope of layers with a window is supported only beside a scaling of the type linear")
	}
	if v, _ := s.Bidirectional.(bool); v || s.Bidirectional != nil && s.Bidirectional != false {
		return fmt.Errorf("use_bidirectional_attention is not supported")
	}
	for name, f := range map[string]struct{ from, to *float32 }{
		"attn_logit_softcapping": {s.AttentionCap, &c.AttentionCap}, "final_logit_softcapping": {s.LogitCap, &c.LogitCap},
	} {
		if f.from == nil {
			continue
		}
		if *f.to = *f.from; !(*f.to > 0) || math.IsInf(float64(*f.to), 0) {
			return fmt.Errorf("%s is %v, want a number above 0", name, *f.to)
		}
	}
	return nil
}

// every returns which layers have a window if every n-th has none, as the settings say, or else this one.
func (s *settings) every(c *decoder.Config, n int64) ([]bool, error) {
	for _, v := range []*int64{s.Pattern, s.OldPattern} {
		if v != nil {
			n = *v
		}
	}
	if n < 1 {
		return nil, fmt.Errorf("sliding_window_pattern is %d", n)
	}
	return decoder.EveryNth(c.Layers, n), nil
}

// Architectures returns the names of the architectures that can be recorded, as model_type has them.
func Architectures() []string {
	names := slices.Concat(slices.Collect(maps.Keys(architectures)), slices.Collect(maps.Keys(wrappers)))
	slices.Sort(names)
	return names
}

// config makes what the recorder wants of the settings. It returns everything that is not supported, and whether what it has read
// is enough to say which tensors the model must have.
func (s *settings) config() (c decoder.Config, sized bool, faults []string) {
	fault := func(format string, args ...any) {
		if len(faults) == 0 {
			format = "config.json: " + format
		}
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	arch := architectures[s.ModelType]
	if arch == nil {
		fault("%v", s.unknown())
		return c, false, faults
	}
	c = decoder.Config{
		Name: s.ModelType, Layers: s.Layers, Embedding: s.Hidden, FFN: s.FFN, Heads: s.Heads, KVHeads: s.KVHeads, HeadDim: s.HeadDim,
		Vocab: s.Vocab, Context: s.Context, NormEps: s.Eps, RopeTheta: s.Theta, RopeHalves: true,
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	for _, x := range []struct {
		name string
		v    int64
	}{
		{"hidden_size", c.Embedding}, {"num_hidden_layers", c.Layers}, {"intermediate_size", c.FFN}, {"num_attention_heads", c.Heads},
		{"vocab_size", c.Vocab}, {"max_position_embeddings", c.Context}, {"num_key_value_heads", c.KVHeads},
	} {
		if x.v < 1 || x.v > 1<<24 {
			fault("%s is %d, outside [1, %d]", x.name, x.v, 1<<24)
		}
	}
	if len(faults) > 0 {
		return c, false, faults
	}
	if c.HeadDim == 0 {
		c.HeadDim = c.Embedding / c.Heads
	}
	if c.Heads%c.KVHeads != 0 {
		fault("%d query heads do not divide over %d kv heads", c.Heads, c.KVHeads)
	}
	if wrong := s.activation(); wrong != "" {
		fault("%s", wrong)
	}
	if !(c.NormEps > 0) || math.IsInf(float64(c.NormEps), 0) {
		fault("rms_norm_eps is %v", c.NormEps)
	}
	if err := decoder.HeadSize(c.HeadDim); err != nil {
		fault("%v", err) // rope of such heads might not fit in memory
	} else if err := s.rope(&c); err != nil {
		fault("%v", err)
	}
	sized = true
	if err := arch(s, &c); err != nil {
		fault("%v", err)
		sized = false
	}
	return c, sized, faults
}

// unknown is the error for a model_type that is not supported. That of a model of text and more has the settings of its language
// model within it, as text_config, and the tensors of several models.
func (s *settings) unknown() error {
	var text struct {
		ModelType string `json:"model_type"`
	}
	if !s.hasText() || json.Unmarshal(s.Text, &text) != nil {
		return fmt.Errorf("model_type %.40q is not supported (%s are)", s.ModelType, strings.Join(Architectures(), ", "))
	}
	kind := text.ModelType
	if architectures[kind] == nil {
		return fmt.Errorf("model_type %.40q is that of a model of more than text (text_config), which is not supported; that of its language model, %.40q, is not supported either (%s are)",
			s.ModelType, kind, strings.Join(Architectures(), ", "))
	}
	return fmt.Errorf("model_type %.40q is that of a model of more than text (text_config), which is not supported: a folder with its language model alone, of the model_type %s, would be", s.ModelType, kind)
}

// hasText reports whether there are settings of a language model within these.
func (s *settings) hasText() bool { return len(s.Text) > 0 && string(s.Text) != "null" }

// plusOne reports whether norms are stored without the 1 that is added to them.
func (s *settings) plusOne() bool { return strings.HasPrefix(s.ModelType, "gemma") }

// activation says what is wrong with what gates are activated by.
func (s *settings) activation() string {
	name, have, want := "hidden_act", s.Activation, []string{"silu"}
	if s.plusOne() {
		want = []string{"gelu_pytorch_tanh"}
		if s.Activates != "" {
			name, have = "hidden_activation", s.Activates
		} else if have == "gelu" { // older files say so, and mean this
			return ""
		}
	}
	if have != "" && !slices.Contains(want, have) {
		return fmt.Sprintf("%s %q is not supported, only %q is", name, have, want[0])
	}
	return ""
}

// rope reads how positions are rotated.
func (s *settings) rope(c *decoder.Config) error {
	scaling := s.Scaling
	if scaling == nil {
		scaling = s.Parameters
	}
	// Newest files have them apart for each type of layer.
	if of, ok := scaling["full_attention"].(map[string]any); ok {
		if local, ok := scaling["sliding_attention"].(map[string]any); ok {
			theta, _ := local["rope_theta"].(float64)
			kind, _ := local["rope_type"].(string)
			if kind != "" && kind != "default" {
				return fmt.Errorf("rope scaling %q of layers with a window is not supported", kind)
			}
			s.LocalTheta = &theta
		}
		scaling = of
	}
	p := parameters(scaling)
	if v := p.number("rope_theta", 0); v != 0 {
		c.RopeTheta = v
	}
	if c.RopeTheta == 0 {
		if c.RopeTheta = 10000; c.Name == "mixtral" {
			c.RopeTheta = 1e6
		}
	}
	if !(c.RopeTheta > 1) || math.IsInf(c.RopeTheta, 0) {
		return fmt.Errorf("rope_theta is %v, want more than 1", c.RopeTheta)
	}
	part := p.number("partial_rotary_factor", 1)
	if s.Partial != nil {
		part = *s.Partial
	}
	if part != 1 {
		c.RopeDims = int64(part * float64(c.HeadDim))
		if !(part > 0 && part < 1) || c.RopeDims < 2 || c.RopeDims%2 != 0 {
			return fmt.Errorf("partial_rotary_factor is %v, of heads of %d elements", part, c.HeadDim)
		}
	}
	kind, _ := scaling["rope_type"].(string)
	if kind == "" {
		kind, _ = scaling["type"].(string)
	}
	factor := p.number("factor", 0)
	switch kind {
	case "", "default", "mrope": // those of pictures are positions of three kinds, which are the same number for text
		return nil
	case "linear":
		if !(factor > 0) {
			return fmt.Errorf("rope_scaling: factor is %v", factor)
		}
		c.RopeScale = float32(1 / factor)
		return nil
	case "llama3":
		return p.llama3(c, factor)
	case "yarn":
		return p.yarn(c, factor)
	case "longrope", "su":
		return p.long(c, s.Trained)
	}
	return fmt.Errorf("rope scaling %q is not supported", kind)
}

// parameters are those of rope.
type parameters map[string]any

// number returns a number, or another one if it is missing.
func (p parameters) number(key string, otherwise float64) float64 {
	if v, ok := p[key].(float64); ok {
		return v
	}
	return otherwise
}

// llama3 slows down pairs that turn seldom, as Llama 3.1 does.
func (p parameters) llama3(c *decoder.Config, factor float64) error {
	low, high, trained := p.number("low_freq_factor", 0), p.number("high_freq_factor", 0), p.number("original_max_position_embeddings", 0)
	if !(factor > 0) || !(low > 0) || !(high > low) || !(trained > 0) {
		return fmt.Errorf("rope_scaling: factor %v, low_freq_factor %v, high_freq_factor %v, original_max_position_embeddings %v", factor, low, high, trained)
	}
	periods := make([]float32, c.Turned()/2)
	for i := range periods {
		period := c.Period(int64(i))
		// Pairs that turn often in what the model was first trained for stay, slow ones are slowed down further, and
		// between them it is both in part.
		switch turns := trained / (2 * math.Pi * period); {
		case turns < low:
			period *= factor
		case turns <= high:
			part := (turns - low) / (high - low)
			period /= (1-part)/factor + part
		}
		periods[i] = float32(period)
	}
	c.RopePeriods = periods
	return nil
}

// yarn is [decoder.Yarn].
func (p parameters) yarn(c *decoder.Config, factor float64) error {
	y := decoder.Yarn{
		Factor: factor, Trained: p.number("original_max_position_embeddings", float64(c.Context)),
		Fast: p.number("beta_fast", 32), Slow: p.number("beta_slow", 1), Rough: true,
	}
	if v, ok := p["truncate"].(bool); ok {
		y.Rough = v
	}
	if err := y.Check(); err != nil {
		return fmt.Errorf("rope_scaling: %w", err)
	}
	c.RopePeriods = y.Periods(*c)
	magnitude := y.Magnitude(1)
	if both := p.number("mscale_all_dim", 0); both != 0 {
		magnitude = y.Magnitude(p.number("mscale", 1)) / y.Magnitude(both)
	}
	c.RopeMagnitude = float32(p.number("attention_factor", magnitude))
	if !(c.RopeMagnitude > 0) {
		return fmt.Errorf("rope_scaling: turned elements are multiplied by %v", c.RopeMagnitude)
	}
	return nil
}

// long divides positions by numbers for each pair, others in long contexts.
func (p parameters) long(c *decoder.Config, trained int64) error {
	if v := p.number("original_max_position_embeddings", 0); v >= 1 && v <= 1<<24 {
		trained = int64(v)
	}
	if trained == 0 && c.Name == "phi3" {
		trained = 4096 // where the files do not say
	}
	if trained < 2 {
		return fmt.Errorf("rope_scaling: original_max_position_embeddings is %d", trained)
	}
	read := func(key string) ([]float32, error) {
		list, _ := p[key].([]any)
		if int64(len(list)) != c.Turned()/2 {
			return nil, fmt.Errorf("rope_scaling: %s has %d numbers, want %d", key, len(list), c.Turned()/2)
		}
		out := make([]float32, len(list))
		for i, v := range list {
			f, _ := v.(float64)
			if !(f > 0) {
				return nil, fmt.Errorf("rope_scaling: %s has %v", key, v)
			}
			out[i] = float32(c.Period(int64(i)) * f)
		}
		return out, nil
	}
	short, err := read("short_factor")
	if err != nil {
		return err
	}
	long, err := read("long_factor")
	if err != nil {
		return err
	}
	c.RopePeriods, c.LongPeriods, c.Trained = short, long, trained
	magnitude := 1.0
	if factor := float64(c.Context) / float64(trained); factor > 1 {
		magnitude = math.Sqrt(1 + math.Log(factor)/math.Log(float64(trained)))
	}
	c.RopeMagnitude = float32(p.number("attention_factor", magnitude))
	if !(c.RopeMagnitude > 0) {
		return fmt.Errorf("rope_scaling: turned elements are multiplied by %v", c.RopeMagnitude)
	}
	return nil
}

// quantization is how MLX has quantized a matrix.
type quantization struct {
	Group int64  `json:"group_size"`
	Bits  int64  `json:"bits"`
	Mode  string `json:"mode"`
}

// allExperts stands for the modules of all experts.
const allExperts = "*.mlp.experts.*"

// quantizations returns how MLX has quantized the matrices (nil: it has not), and the modules that config.json lists as
// exceptions, by their names: each with its own quantization, or with nil if it is not quantized.
func (s *settings) quantizations() (all *quantization, apart map[string]*quantization, err error) {
	raw := s.Quantization
	if raw == nil && s.Other != nil {
		var q struct {
			Method string `json:"quant_method"`
		}
		if json.Unmarshal(s.Other, &q); q.Method == mxfp4 && s.ModelType == "gpt_oss" {
			return nil, map[string]*quantization{allExperts: {Group: 32, Bits: 4, Mode: mxfp4}}, nil
		} else if q.Method != "" {
			return nil, nil, fmt.Errorf("quantization_config: the method %q is not supported, MLX's is", q.Method)
		}
		raw = s.Other
	}
	if raw == nil || string(raw) == "null" {
		return nil, nil, nil
	}
	all = &quantization{}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, all); err != nil {
		return nil, nil, fmt.Errorf("quantization: %w", err)
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, nil, fmt.Errorf("quantization: %w", err)
	}
	apart = map[string]*quantization{}
	for name, v := range fields {
		switch name {
		case "group_size", "bits", "mode":
			continue
		}
		if string(v) == "false" {
			apart[name] = nil
			continue
		}
		q := *all
		if string(v) != "true" {
			q.Mode = "" // what it does not say is not that of all, but affine
			if err := json.Unmarshal(v, &q); err != nil {
				return nil, nil, fmt.Errorf("quantization of %s: %w", name, err)
			}
		}
		apart[name] = &q
	}
	for name, q := range apart {
		if q != nil {
			if err := q.check(); err != nil {
				return nil, nil, fmt.Errorf("quantization of %s: %w", name, err)
			}
		}
	}
	return all, apart, all.check()
}

func (q *quantization) check() error {
	if q.Mode == mxfp4 && q.Bits == 4 && q.Group == 32 {
		return nil
	}
	if q.Mode != "" && q.Mode != "affine" || !slices.Contains([]int64{2, 3, 4, 5, 6, 8}, q.Bits) || !slices.Contains([]int64{32, 64, 128}, q.Group) {
		return fmt.Errorf("%d bits in groups of %d, mode %q: want affine, 2, 3, 4, 5, 6 or 8 bits, and 32, 64 or 128; or mxfp4, 4 bits and 32", q.Bits, q.Group, q.Mode)
	}
	return nil
}
