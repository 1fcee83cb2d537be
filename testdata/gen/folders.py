"""Small models as MLX and Hugging Face publish them, with what mlx-lm computes of them.

    python testdata/gen/folders.py [OUT [NAME …]]      (OUT: testdata/folders)

writes OUT/NAME.tar.gz, a folder with config.json, model.safetensors (one of them in two files with an index), tokenizer.json
and tokenizer_config.json, and OUT/NAME.json: `ids`, a prompt of PROMPT tokens and the STEPS that follow it, each the one with
the largest logit; `logits`, those behind the prompt, one and STEPS - 1 tokens later; `min_gap`, by how much a chosen token's
logit was the largest at least; `texts` with their tokens. Oracles: mlx-lm on MLX's CPU back end in float32, with the
numbers that the files have in bfloat16 or float16, and the package tokenizers. Deterministic. Versions: requirements.txt.
"""

import copy
import gzip
import importlib
import io
import json
import math
import sys
import tarfile
import tempfile
import types
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm.models import rope_utils
from mlx_lm.models.base import create_causal_mask
from mlx.utils import tree_flatten, tree_unflatten
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizer import ALPHABET

VOCAB, PROMPT, STEPS, MIN_GAP = 300, 11, 64, 0.004
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
SHAPE = {
    "hidden_size": 256, "num_hidden_layers": 2, "intermediate_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
    "rms_norm_eps": 1e-5, "vocab_size": VOCAB, "max_position_embeddings": 128, "rope_theta": 10000.0, "tie_word_embeddings": True, "hidden_act": "silu",
}  # fmt: skip
# Name: config, type of numbers, quantization (None: dense), pre-tokenizer.
MODELS = {
    "llama3": ({"model_type": "llama", "rope_theta": 500000.0, "tie_word_embeddings": False, "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}, mx.bfloat16, (64, 4), "llama3"),
    "mistral": ({"model_type": "mistral", "sliding_window": 30}, mx.float16, None, "smollm"),
    "qwen2": ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 25, "max_window_layers": 1}, mx.bfloat16, (32, 8), "qwen2"),
    "qwen3": ({"model_type": "qwen3", "head_dim": 128}, mx.bfloat16, "mixed", "qwen2"),
    "smollm3": ({"model_type": "smollm3", "num_hidden_layers": 4, "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0]}, mx.bfloat16, (128, 3), "llama3"),
    "qwen3_moe": ({"model_type": "qwen3_moe", "head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "num_experts": 6, "num_experts_per_tok": 2,
                   "moe_intermediate_size": 128, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True}, mx.bfloat16, (64, 4), "qwen2"),
    "granite": ({"model_type": "granite", "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.015625, "logits_scaling": 8.0,
                 "attention_bias": False, "mlp_bias": False}, mx.float16, (64, 6), "smollm"),
    "gemma2": ({"model_type": "gemma2", "head_dim": 256, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 3, "sliding_window": 24,
                "query_pre_attn_scalar": 144, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 10.0, "hidden_act": "gelu_pytorch_tanh",
                "hidden_activation": "gelu_pytorch_tanh"}, mx.bfloat16, (64, 4), "smollm"),
    # The square root of its width is rounded.
    "gemma3_text": ({"model_type": "gemma3_text", "hidden_size": 320, "head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 3,
                     "sliding_window": 20, "sliding_window_pattern": 2, "query_pre_attn_scalar": 100, "rope_theta": 1e6, "rope_local_base_freq": 10000.0,
                     "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "tie_word_embeddings": False, "hidden_activation": "gelu_pytorch_tanh"}, mx.bfloat16, None, "smollm"),
    "qwen2-yarn": ({"model_type": "qwen2", "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}}, mx.bfloat16, (64, 8), "qwen2"),
    "llama-long": ({"model_type": "llama", "original_max_position_embeddings": 64, "rope_scaling": {"type": "longrope", "original_max_position_embeddings": 64,
                    "short_factor": [1.0] * 32, "long_factor": [1 + i / 4 for i in range(32)]}}, mx.float16, None, "smollm"),
    "gpt_oss": ({"model_type": "gpt_oss", "num_hidden_layers": 2, "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": 16, "tie_word_embeddings": False,
                 "rope_theta": 150000.0, "swiglu_limit": 7.0, "attention_bias": True, "layer_types": ["sliding_attention", "full_attention"],
                 "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 64}},
                mx.bfloat16, "mxfp4", "qwen2"),
    "gpt_oss-blocks": ({"model_type": "gpt_oss", "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 3, "sliding_window": 24, "tie_word_embeddings": False,
                        "rope_theta": 150000.0, "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 64}},
                       mx.bfloat16, "experts", "qwen2"),
    # One that turns three quarters of its heads in a long context, and one with a window.
    "phi3": ({"model_type": "phi3", "hidden_size": 256, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 128, "partial_rotary_factor": 0.75,
              "original_max_position_embeddings": 64, "tie_word_embeddings": False, "rope_scaling": {
                  "type": "longrope", "short_factor": [1.0] * 48, "long_factor": [1 + i / 5 for i in range(48)]}}, mx.bfloat16, (128, 4), "smollm"),
    "phi3-dense": ({"model_type": "phi3", "hidden_size": 192, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 96, "sliding_window": 27}, mx.float16, None, "smollm"),
    "mixtral": ({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 128, "sliding_window": None,
                 "num_hidden_layers": 1}, mx.bfloat16, (128, 4), "smollm"),
    "mixtral-experts": ({"model_type": "mixtral", "num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 128, "tie_word_embeddings": False},
                        mx.bfloat16, None, "smollm"),
    "qwen2_moe": ({"model_type": "qwen2_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 128, "shared_expert_intermediate_size": 128,
                   "num_hidden_layers": 1, "tie_word_embeddings": False, "use_sliding_window": False, "sliding_window": 32768}, mx.bfloat16, (128, 4), "qwen2"),
    "qwen2_moe-experts": ({"model_type": "qwen2_moe", "num_experts": 4, "num_experts_per_tok": 3, "moe_intermediate_size": 128,
                           "shared_expert_intermediate_size": 192, "num_hidden_layers": 1, "tie_word_embeddings": False, "norm_topk_prob": False}, mx.float16, None, "qwen2"),
    "qwen3_moe-experts": ({"model_type": "qwen3_moe", "head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "num_experts": 5, "num_experts_per_tok": 2,
                           "moe_intermediate_size": 128, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True}, mx.bfloat16, None, "qwen2"),
    "granitemoe": ({"model_type": "granitemoe", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 128, "num_hidden_layers": 1, "embedding_multiplier": 12.0,
                    "residual_multiplier": 0.22, "attention_multiplier": 0.015625, "logits_scaling": 6.0, "tie_word_embeddings": False, "attention_bias": False}, mx.bfloat16, "predicate", "smollm"),
    "granitemoe-dense": ({"model_type": "granitemoe", "num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 128, "embedding_multiplier": 12.0,
                          "residual_multiplier": 0.22, "attention_multiplier": 0.015625, "logits_scaling": 6.0, "tie_word_embeddings": False, "attention_bias": False}, mx.float16, None, "smollm"),
    # Layers of mlx-lm's granitemoehybrid may be others too; those of granitemoeshared are all of this kind.
    "granitemoeshared": ({"model_type": "granitemoeshared", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 128, "shared_intermediate_size": 192,
                          "num_hidden_layers": 1, "layer_types": ["attention"], "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.015625,
                          "logits_scaling": 6.0, "tie_word_embeddings": False, "attention_bias": False}, mx.float16, None, "smollm"),
    "granitemoehybrid": ({"model_type": "granitemoehybrid", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 128, "shared_intermediate_size": 128,
                          "num_hidden_layers": 1, "layer_types": ["attention"], "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.015625,
                          "logits_scaling": 6.0, "tie_word_embeddings": False, "attention_bias": False, "position_embedding_type": "nope"}, mx.bfloat16, "predicate", "smollm"),
    "granitemoehybrid-dense": ({"model_type": "granitemoehybrid", "num_local_experts": 0, "num_experts_per_tok": 0, "intermediate_size": 256, "shared_intermediate_size": 256,
                                "layer_types": ["attention", "attention"], "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.015625,
                                "logits_scaling": 6.0, "tie_word_embeddings": False, "attention_bias": False, "position_embedding_type": "rope"}, mx.bfloat16, None, "smollm"),
    # Models of text and pictures: text_config is SHAPE and what differs, where ... leaves out a setting. That of Gemma 3 of 4B says no more than this.
    "gemma3": ({"model_type": "gemma3", "vision_config": {"model_type": "siglip_vision_model"}, "text_config": {
        **dict.fromkeys(SHAPE, ...), "model_type": "gemma3_text", "hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 6, "sliding_window": 20,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}}, mx.bfloat16, None, "smollm"),
    "gemma3-mixed": ({"model_type": "gemma3", "vision_config": {"model_type": "siglip_vision_model"}, "text_config": {
        "model_type": "gemma3_text", "hidden_size": 320, "head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2, "sliding_window": 20,
        "sliding_window_pattern": 2, "query_pre_attn_scalar": 168, "rope_theta": 1e6, "rope_local_base_freq": 10000.0, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "hidden_act": ..., "hidden_activation": "gelu_pytorch_tanh", "vocab_size": 299}}, mx.bfloat16, "mixed", "smollm"),
    "mistral3": ({"model_type": "mistral3", "vision_config": {"model_type": "pixtral"}, "text_config": {
        "model_type": "mistral", "num_hidden_layers": 1, "sliding_window": None, "tie_word_embeddings": ..., "vocab_size": VOCAB}}, mx.float16, None, "smollm"),
    # Its settings are not within others.
    "qwen2_vl": ({"model_type": "qwen2_vl", "num_hidden_layers": 1, "use_sliding_window": False, "sliding_window": 20, "max_window_layers": 1, "tie_word_embeddings": False,
                  "rope_theta": 1e6, "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}, "vision_config": {"model_type": "qwen2_vl"}}, mx.bfloat16, None, "qwen2"),
    "qwen2_5_vl": ({"model_type": "qwen2_5_vl", "vision_config": {"model_type": "qwen2_5_vl"}, "text_config": {
        "model_type": "qwen2_5_vl_text", "num_hidden_layers": 1, "use_sliding_window": False, "rope_theta": ..., "rope_scaling": {"type": "mrope", "mrope_section": [8, 12, 12]}}},
        mx.bfloat16, (64, 4), "qwen2"),
    "qwen3_vl": ({"model_type": "qwen3_vl", "vision_config": {"model_type": "qwen3_vl"}, "text_config": {
        "model_type": "qwen3_vl_text", "num_hidden_layers": 1, "head_dim": 128, "rope_theta": 5e6, "rope_scaling": {
            "rope_type": "default", "mrope_interleaved": True, "mrope_section": [24, 20, 20]}}}, mx.bfloat16, None, "qwen2"),
    "qwen3_vl_moe": ({"model_type": "qwen3_vl_moe", "vision_config": {"model_type": "qwen3_vl_moe"}, "text_config": {
        "model_type": "qwen3_vl_moe_text", "num_hidden_layers": 1, "head_dim": 128, "num_attention_heads": 2, "num_key_value_heads": 1, "num_experts": 4,
        "num_experts_per_tok": 2, "moe_intermediate_size": 128, "decoder_sparse_step": 1, "mlp_only_layers": [], "norm_topk_prob": True, "tie_word_embeddings": False,
        "rope_theta": 5e6, "rope_scaling": {"rope_type": "default", "mrope_interleaved": True, "mrope_section": [24, 20, 20]}}}, mx.bfloat16, "predicate", "qwen2"),
    "pixtral": ({"model_type": "pixtral", "vision_config": {"model_type": "pixtral"}, "text_config": {
        "model_type": "mistral", "num_hidden_layers": 1, "num_attention_heads": ..., "num_key_value_heads": 2, "sliding_window": None, "tie_word_embeddings": ...}},
        mx.bfloat16, (64, 4), "smollm"),
}
# Folders of these have their experts as Hugging Face has them: this is undone by mlx-lm's sanitize.
HUGGINGFACE = ("mixtral-experts", "qwen2_moe-experts", "qwen3_moe-experts", "granitemoe-dense", "granitemoeshared", "granitemoehybrid-dense")  # fmt: skip
# Types whose model mlx-lm has as that of another type.
ALIKE = {"mistral": "llama", "granitemoeshared": "granitemoehybrid", "qwen2_5_vl": "qwen2_vl"}
# Of models of text and pictures: what the folder calls the body of the language model, its head, and modules that read pictures.
# The third layout is what transformers has written since 4.52.
LANGUAGE = "language_model.model.", "language_model.lm_head."
WRAPPED = {
    "gemma3": (*LANGUAGE, ("vision_tower.vision_model.post_layernorm", "multi_modal_projector.mm_soft_emb_norm")),
    "pixtral": (*LANGUAGE, ("vision_tower.ln_pre", "multi_modal_projector.norm")),
    "qwen2_5_vl": (*LANGUAGE, ("vision_tower.merger.ln_q",)),
    "qwen3_vl_moe": (*LANGUAGE, ("visual.merger.norm",)),
    "mistral3": ("model.language_model.", "lm_head.", ("model.vision_tower.ln_pre", "model.multi_modal_projector.norm")),
    "qwen3_vl": ("model.language_model.", "lm_head.", ("model.visual.merger.norm",)),
    "qwen2_vl": ("model.", "lm_head.", ("visual.merger.ln_q",)),
}
ADDED = [("<|begin|>", True), ("<|end|>", True), ("<tool>", False)]


def make_tokenizer(kind):
    """A small byte-level BPE, with the steps that published files of a kind have."""
    vocab = {ALPHABET[b]: b for b in range(256)}
    merges = []
    for pair in ("t h", "th e", "Ġ the", "i n", "in g", "1 1", "11 1", "Ġ a", "e r", "Ċ Ċ", "Ġ Ġ", "ĠĠ ĠĠ", "Ã ©", "e Ì"):
        x, y = pair.split(" ")
        merges.append((x, y))
        vocab[x + y] = len(vocab)
    vocab["Ġwhole"] = len(vocab)  # made by no merge
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=kind == "llama3"))
    if kind == "smollm":
        t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    else:
        split = pre_tokenizers.Split(Regex(LLAMA3 if kind == "llama3" else QWEN2), "isolated")
        t.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    if kind == "qwen2":
        t.normalizer = normalizers.NFC()
    t.add_special_tokens([AddedToken(a, special=True, normalized=False) for a, s in ADDED if s])
    t.add_tokens([AddedToken(a, normalized=False) for a, s in ADDED if not s])
    t.decoder = decoders.ByteLevel()
    if kind == "llama3":
        begin = t.token_to_id("<|begin|>")
        t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(single="<|begin|> $A", special_tokens=[("<|begin|>", begin)])])
    return t


TEXTS = ["the thing", " the 1111 things\n\n\n  whole whole", "é e\u0301 naïve", "<|begin|>the<tool>ing<|end|> the", "I'LL they're 12345 x2\r\n y", "字\u3000 \t\n a", "", "    four  spaces "]


def weights(model, dtype, rng, gemma):
    """Random weights with few different rows, so that files are small."""
    some = []
    for name, w in tree_flatten(model.parameters()):
        if w.ndim == 1:
            v = rng.standard_normal(w.shape) * (0.3 if name.endswith("bias") else 0.2) + (0 if name.endswith("bias") else 1)
            if gemma and "model.layers" in name and ".post_" in name:
                v *= 8  # or else the embedding, which is scaled, decides over tokens
            if gemma and len(model.layers) > 3 and name.endswith(("q_norm.weight", "k_norm.weight")):
                v -= 1  # 1 is added: many layers with scores of twice that size each amplify roundings of 16 bits
        elif name.endswith("bias"):  # of experts; such that gates are clamped
            v = rng.standard_normal(w.shape) * (0.1 if "down" in name else 4)
        else:
            v = np.resize(rng.standard_normal(509), w.shape) * w.shape[-1] ** -0.5
        some.append((name, mx.array(v.astype(np.float32)).astype(dtype)))
    model.update(tree_unflatten(some))


def add_windows(arch, model, config):
    """Gives layers the windows that they have by Transformers; mlx-lm has them for some models alone."""
    window, kind = config.get("sliding_window"), config["model_type"]
    if kind not in ("mistral", "qwen2", "gemma2", "phi3"):
        return
    layers = model.model.layers
    block = type(layers[0])
    if not hasattr(block, "plain"):
        block.plain = block.__call__
        block.__call__ = lambda self, x, mask=None, cache=None: self.plain(x, create_causal_mask(x.shape[1], window_size=self.window) if getattr(self, "window", None) else mask, cache)
    for i, layer in enumerate(layers):
        has = {"mistral": True, "phi3": True, "qwen2": config.get("use_sliding_window") and i >= config.get("max_window_layers", 0), "gemma2": i % 2 == 0}[kind]
        layer.window = window if has else None


def published(stored):
    """Tensors of experts as OpenAI has them: bytes in blocks of 16, and the rows of gate and up take turns."""
    out = {}
    for name, v in stored.items():
        at, experts, rest = name.partition(".mlp.experts.")
        proj, _, part = rest.partition(".")
        if not experts:
            out[name] = v
            continue

        def bytes_of(w):
            return w.view(mx.uint8).reshape(*w.shape[:-1], w.shape[-1] // 4, 16) if part == "weight" else w

        suffix = {"weight": "_blocks", "scales": "_scales", "bias": "_bias"}[part]
        if proj == "down_proj":
            out[f"{at}{experts}{proj}{suffix}"] = bytes_of(v)
        elif proj == "gate_proj":
            both = mx.stack([bytes_of(v), bytes_of(stored[name.replace("gate_proj", "up_proj")])], axis=2)
            out[f"{at}{experts}gate_up_proj{suffix}"] = mx.contiguous(both.reshape(both.shape[0], -1, *both.shape[3:]))
    return out


def experts_apart(stored, kind):
    """Tensors of experts as Hugging Face has them: a tensor for each, or gate and up in one of Granite's."""
    out = {}
    for name, v in stored.items():
        at, block, proj = name.rpartition(".switch_mlp.")
        if kind == "granitemoehybrid" and ".mlp." in name:
            if "down_proj" in name:
                out[name.replace("mlp.down_proj", "shared_mlp.output_linear")] = v
            elif "gate_proj" in name:
                out[name.replace("mlp.gate_proj", "shared_mlp.input_linear")] = mx.concatenate([v, stored[name.replace("gate_proj", "up_proj")]])
        elif not block:
            out[name] = v
        elif ".block_sparse_moe" in at and any(".router." in other for other in stored):
            if "down_proj" in proj:
                out[f"{at}.output_linear.weight"] = v
            elif "gate_proj" in proj:
                out[f"{at}.input_linear.weight"] = mx.concatenate([v, stored[name.replace("gate_proj", "up_proj")]], axis=1)
        else:
            if ".block_sparse_moe" in at:
                for ours, theirs in (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
                    proj = proj.replace(ours, theirs)
            for i in range(v.shape[0]):
                out[f"{at}.experts.{i}.{proj}"] = mx.contiguous(v[i])
    return out


def with_pictures(stored, kind, dtype):
    """Tensors of a language model as those of a model of text and pictures are published."""
    body, head, pictures = WRAPPED[kind]
    out = {f"{name}.weight": mx.ones((24,), dtype) for name in pictures}
    for name, v in stored.items():
        out[name.replace(LANGUAGE[0], body) if name.startswith(LANGUAGE[0]) else name.replace(LANGUAGE[1], head)] = v
    return out


def main(out, names):
    out.mkdir(exist_ok=True)
    mx.set_default_device(mx.cpu)
    for number, (name, (more, dtype, quant, kind)) in enumerate(MODELS.items()):
        if names and name not in names:
            continue
        if "text_config" in more:
            text = {k: v for k, v in {**SHAPE, **more["text_config"]}.items() if v is not ...}
            config = {**more, "text_config": text, "vocab_size": VOCAB}
        else:
            config = text = {**SHAPE, **more}
        arch = importlib.import_module("mlx_lm.models." + ALIKE.get(config["model_type"], config["model_type"]))
        # By Transformers yarn's limits are no whole numbers of pairs then, which mlx-lm does not read.
        rough = (config.get("rope_scaling") or {}).get("truncate", True)
        rope_utils.math = math if rough else types.SimpleNamespace(**{**vars(math), "floor": float, "ceil": float})
        fresh = lambda: arch.Model(arch.ModelArgs.from_dict(copy.deepcopy(config)))  # it may write to them
        model = fresh()
        wrapped, prefix = config["model_type"] in WRAPPED, ""
        if wrapped:
            prefix = "language_model."
            if config["model_type"] == "gemma3":
                model.sanitize({"language_model.model.norm.weight": mx.ones(1)})  # without a head it is tied
        add_windows(arch, model, config)
        weights(model, dtype, np.random.default_rng(700 + number), config["model_type"].startswith("gemma"))
        if quant == "mixed":  # as mlx-lm's mixed recipes: some matrices apart, one of them not at all
            def choose(path, m):
                if not hasattr(m, "to_quantized") or "layers.1.mlp.down_proj" in path:
                    return False
                return {"group_size": 64, "bits": 6} if "v_proj" in path else {"group_size": 64, "bits": 4}

            nn.quantize(model, group_size=64, bits=4, class_predicate=choose)
            config["quantization"] = {"group_size": 64, "bits": 4, prefix + "model.layers.1.mlp.down_proj": False}
            for i in range(text["num_hidden_layers"]):
                config["quantization"][f"{prefix}model.layers.{i}.self_attn.v_proj"] = {"group_size": 64, "bits": 6}
        elif quant == "experts":  # as OpenAI publishes it: experts alone, below
            nn.quantize(model, group_size=32, bits=4, mode="mxfp4", class_predicate=lambda path, m: hasattr(m, "to_quantized") and ".experts." in path)
            config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}
        elif quant == "mxfp4":  # as gpt-oss is published: all but the router, which is quantized in another mode
            def choose(path, m):
                return hasattr(m, "to_quantized") and ({"group_size": 64, "bits": 8} if path.endswith("router") else True)

            nn.quantize(model, group_size=32, bits=4, mode="mxfp4", class_predicate=choose)
            config["quantization"] = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
            for i in range(config["num_hidden_layers"]):
                config["quantization"][f"model.layers.{i}.mlp.router"] = {"group_size": 64, "bits": 8}
        elif quant == "predicate":  # as mlx-lm quantizes it: some matrices otherwise, by what the model's class says
            def choose(path, m):
                q = hasattr(m, "to_quantized") and model.quant_predicate(path, m)
                if isinstance(q, dict):
                    config["quantization"][path] = q
                return q

            config["quantization"] = {"group_size": 128, "bits": 4}
            nn.quantize(model, group_size=128, bits=4, class_predicate=choose)
        elif quant:
            nn.quantize(model, group_size=quant[0], bits=quant[1])
            config["quantization"] = {"group_size": quant[0], "bits": quant[1]}
            config["quantization_config"] = config["quantization"]
        stored = dict(tree_flatten(model.parameters()))
        model.update(tree_unflatten([(k, v if v.dtype in (mx.uint32, mx.uint8) else v.astype(mx.float32)) for k, v in stored.items()]))
        if quant == "experts":
            stored = published(stored)
        if name in HUGGINGFACE:
            apart = experts_apart(stored, config["model_type"])
            again = model.sanitize(dict(apart))
            assert apart.keys() != stored.keys() == again.keys() and all(mx.array_equal(again[k], stored[k]).item() for k in stored)
            stored = apart
        if wrapped:
            apart = with_pictures(stored, config["model_type"], dtype)
            again = fresh().sanitize(dict(apart))
            assert len(apart) > len(stored) and again.keys() == stored.keys() and all(mx.array_equal(again[k], stored[k]).item() for k in stored)
            stored = apart
        tok = make_tokenizer(kind)
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": tok.token_to_id("<|end|>")}, indent=1))
            (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<|begin|>", "eos_token": {"content": "<|end|>"}, "chat_template": "{{ messages[0].content }}"}))
            tok.save(str(folder / "tokenizer.json"))
            if name == "qwen3":
                half = sorted(stored)[: len(stored) // 2]
                parts = {"model-00001-of-00002.safetensors": {k: stored[k] for k in half}, "model-00002-of-00002.safetensors": {k: v for k, v in stored.items() if k not in half}}
                (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": {k: f for f, p in parts.items() for k in p}}))
            else:
                parts = {"model.safetensors": stored}
            for f, p in parts.items():
                mx.save_safetensors(str(folder / f), p, metadata={"format": "mlx"})
            packed = io.BytesIO()
            with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0) as z, tarfile.open(fileobj=z, mode="w") as tar:
                for f in sorted(folder.iterdir()):
                    info = tarfile.TarInfo(f.name)
                    info.size = f.stat().st_size
                    tar.addfile(info, io.BytesIO(f.read_bytes()))
        (out / f"{name}.tar.gz").write_bytes(packed.getvalue())

        def logits(ids):
            return np.array(model(mx.array([ids]))[0, -1].astype(mx.float32))

        for prompt in range(100):
            ids = [int(i) for i in np.random.default_rng([number, prompt]).integers(0, VOCAB - 30, PROMPT)]
            last, kept, gap = logits(ids), [], np.inf
            kept.append(last)
            for step in range(STEPS):
                second, first = np.argsort(last)[-2:]
                gap = min(gap, float(last[first] - last[second]))
                if gap < MIN_GAP:
                    break
                ids.append(int(first))
                last = logits(ids)
                if step in (0, STEPS - 2):
                    kept.append(last)
            if gap >= MIN_GAP and len(set(ids[PROMPT:])) >= (4 if config["model_type"] == "gpt_oss" else 1):
                break
        values = {"prompt": PROMPT, "ids": ids, "min_gap": gap, "logits": [[round(float(v), 6) for v in row] for row in kept],
                  "texts": [[t, tok.encode(t, add_special_tokens=False).ids] for t in TEXTS]}  # fmt: skip
        (out / f"{name}.json").write_text(json.dumps(values) + "\n")
        print(name, len(packed.getvalue()), "bytes, gap", gap)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent / "folders"), sys.argv[2:])
