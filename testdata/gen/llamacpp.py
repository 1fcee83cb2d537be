"""llama.cpp for the scripts of this folder, through its C functions.

The Python class Llama of llama-cpp-python cannot say use_extra_bufts (the AMX
and repacked weight layouts) nor switch flash attention off for certain, so the
scripts do not use it. Versions: requirements.txt.
"""

import ctypes

import llama_cpp as L
import numpy as np

_quiet = L.llama_log_callback(lambda level, text, data: None)
L.llama_log_set(_quiet, ctypes.c_void_p())
L.llama_backend_init()

VERSION = f"llama-cpp-python {L.__version__}, llama.cpp {L.llama_version().decode()}"


class Model:
    """A GGUF file. extra_bufts=False keeps the weights in the file's layout."""

    def __init__(self, path, extra_bufts):
        params = L.llama_model_default_params()
        params.n_gpu_layers = 0
        params.use_extra_bufts = extra_bufts
        self._model = L.llama_model_load_from_file(str(path).encode(), params)
        if not self._model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self._vocab = L.llama_model_get_vocab(self._model)
        self.vocab_size = L.llama_vocab_n_tokens(self._vocab)

    def encode(self, text, special):
        """Token ids of text; special: spellings of special tokens are those tokens."""
        data = text.encode()
        ids = (L.llama_token * (len(data) + 8))()
        n = L.llama_tokenize(self._vocab, data, len(data), ids, len(ids), False, special)
        if n < 0:
            raise SystemExit(f"{-n} tokens for {len(data)} bytes")
        return list(ids[:n])

    def decode(self, ids):
        """Text of ids, special tokens spelled out; cut UTF-8 becomes U+FFFD."""
        arr = (L.llama_token * len(ids))(*ids)
        buf = ctypes.create_string_buffer(64 + 64 * len(ids))
        n = L.llama_detokenize(self._vocab, arr, len(ids), buf, len(buf), False, True)
        if n < 0:
            raise SystemExit(f"{-n} bytes for {len(ids)} tokens")
        return buf.raw[:n].decode("utf-8", "replace")


class Context:
    """A key/value cache on a model.

    exact: float32 cache and no flash attention; else llama.cpp's defaults
    (float16 cache, flash attention where it likes).
    """

    def __init__(self, model, size, threads, exact):
        params = L.llama_context_default_params()
        params.n_ctx = size
        params.n_threads = params.n_threads_batch = threads
        if exact:
            params.type_k = params.type_v = L.GGML_TYPE_F32
            params.flash_attn_type = L.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._model = model
        self._ctx = L.llama_init_from_model(model._model, params)
        if not self._ctx:
            raise SystemExit(f"llama.cpp gives no context of {size} tokens")

    def clear(self):
        """Forgets all tokens."""
        L.llama_memory_clear(L.llama_get_memory(self._ctx), True)

    def logits(self, ids):
        """Appends ids; float32 logits after the last, valid until the next call."""
        tokens = (L.llama_token * len(ids))(*ids)  # the batch points into it: keep it alive
        rc = L.llama_decode(self._ctx, L.llama_batch_get_one(tokens, len(ids)))
        if rc:
            raise SystemExit(f"llama_decode of {len(ids)} tokens: {rc}")
        return np.ctypeslib.as_array(L.llama_get_logits_ith(self._ctx, -1), (self._model.vocab_size,))

    def close(self):
        L.llama_free(self._ctx)
