// Runs graphs of ggml on its Metal backend, and models with llama.cpp on it, in a process whose Metal is the stand-in. What it
// computes is written to a file, so that replays of the capture can be compared with it.
#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "ggml-metal.h"
#include "ggml.h"
#include "llama.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <time.h>
#include <vector>

extern "C" {
void ggmlhost_link(void);
void *objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void *);
int __cxa_finalize(void *);
extern void *__dso_handle;
}
#define PUBLIC extern "C" __attribute__((visibility("default")))

namespace {

void (*mark_step)(const char *); // of the library that captures; NULL: none is there

// step marks a step of the capture.
void step(const char *name) {
  if (mark_step) mark_step(name);
}

// Random numbers, the same in every run.
struct Random {
  uint64_t state;
  float operator()() { // −1 to 1
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 32) / 2147483648.0f;
  }
};

// write appends a result: the length of its name, the name, its size and its bytes.
void write(FILE *to, const std::string &name, const void *data, size_t n) {
  uint32_t head[2] = {(uint32_t)name.size(), (uint32_t)n};
  fwrite(&head[0], 4, 1, to), fwrite(name.data(), 1, name.size(), to);
  fwrite(&head[1], 4, 1, to), fwrite(data, 1, n, to);
}

struct Case {
  const char *name;
  double error; // max normalized mean squared error against ggml's CPU backend
  std::function<ggml_tensor *(ggml_context *)> build;
};

ggml_tensor *input(ggml_context *c, ggml_type type, int64_t a, int64_t b = 1, int64_t d = 1, int64_t e = 1) {
  ggml_tensor *t = ggml_new_tensor_4d(c, type, a, b, d, e);
  ggml_set_input(t);
  return t;
}

std::vector<float> floats(ggml_tensor *t) {
  std::vector<uint8_t> raw(ggml_nbytes(t));
  ggml_backend_tensor_get(t, raw.data(), 0, raw.size());
  std::vector<float> out(ggml_nelements(t));
  if (t->type == GGML_TYPE_F32) memcpy(out.data(), raw.data(), raw.size());
  else if (t->type == GGML_TYPE_I32)
    for (size_t i = 0; i < out.size(); i++) out[i] = (float)((const int32_t *)raw.data())[i];
  else ggml_get_type_traits(t->type)->to_float(raw.data(), out.data(), out.size());
  return out;
}

// compute runs a case on a backend and returns its result.
std::vector<float> compute(ggml_backend_t backend, const Case &k, bool mark, std::vector<uint8_t> *raw) {
  ggml_init_params p = {ggml_tensor_overhead() * 64 + ggml_graph_overhead(), nullptr, true};
  ggml_context *c = ggml_init(p);
  ggml_tensor *out = k.build(c);
  ggml_cgraph *g = ggml_new_graph(c);
  ggml_build_forward_expand(g, out);
  ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(c, backend);
  Random random{42};
  for (ggml_tensor *t = ggml_get_first_tensor(c); t; t = ggml_get_next_tensor(c, t)) {
    if (!(t->flags & GGML_TENSOR_FLAG_INPUT)) continue;
    int64_t n = ggml_nelements(t);
    if (t->type == GGML_TYPE_I32) { // positions and rows
      std::vector<int32_t> v(n);
      for (int64_t i = 0; i < n; i++) v[i] = (int32_t)(i * 5 % 7);
      ggml_backend_tensor_set(t, v.data(), 0, 4 * n);
      continue;
    }
    std::vector<float> v(n);
    for (float &x : v) x = random();
    if (t->type == GGML_TYPE_F32) {
      ggml_backend_tensor_set(t, v.data(), 0, 4 * n);
      continue;
    }
    std::vector<uint8_t> bytes(ggml_nbytes(t));
    ggml_quantize_chunk(t->type, v.data(), bytes.data(), 0, n / t->ne[0], t->ne[0], nullptr);
    ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
  }
  if (mark) step(k.name);
  ggml_backend_graph_compute(backend, g);
  if (mark) step(nullptr);
  if (raw) raw->resize(ggml_nbytes(out)), ggml_backend_tensor_get(out, raw->data(), 0, raw->size());
  std::vector<float> v = floats(out);
  ggml_backend_buffer_free(buffer);
  ggml_free(c);
  return v;
}

const float root = 1 / std::sqrt(64.0f);

const std::vector<Case> cases = {
    {"add", 1e-12, [](ggml_context *c) { return ggml_add(c, input(c, GGML_TYPE_F32, 96, 3), input(c, GGML_TYPE_F32, 96)); }},
    {"mul_mv_f32", 1e-10, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_F32, 128, 40), input(c, GGML_TYPE_F32, 128)); }},
    {"mul_mv_f16", 1e-6, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_F16, 128, 40), input(c, GGML_TYPE_F32, 128)); }},
    {"mul_mv_q4_1", 5e-4, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_Q4_1, 256, 40), input(c, GGML_TYPE_F32, 256)); }},
    {"mul_mv_q6_k", 5e-4, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_Q6_K, 256, 40), input(c, GGML_TYPE_F32, 256)); }},
    {"mul_mv_ext_q4_1", 5e-4, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_Q4_1, 256, 40), input(c, GGML_TYPE_F32, 256, 4)); }},
    {"mul_mm_q4_1", 5e-4, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_Q4_1, 256, 64), input(c, GGML_TYPE_F32, 256, 40)); }},
    {"rms_norm", 1e-10, [](ggml_context *c) { return ggml_mul(c, ggml_rms_norm(c, input(c, GGML_TYPE_F32, 96, 5), 1e-5f), input(c, GGML_TYPE_F32, 96)); }},
    {"rope", 1e-8, [](ggml_context *c) { return ggml_rope(c, input(c, GGML_TYPE_F32, 64, 4, 5), input(c, GGML_TYPE_I32, 5), 64, GGML_ROPE_TYPE_NEOX); }},
    {"soft_max", 1e-10, [](ggml_context *c) { return ggml_soft_max_ext(c, input(c, GGML_TYPE_F32, 70, 5, 3), input(c, GGML_TYPE_F16, 70, 5), root, 0); }},
    {"swiglu", 1e-10, [](ggml_context *c) { return ggml_swiglu_split(c, input(c, GGML_TYPE_F32, 96, 3), input(c, GGML_TYPE_F32, 96, 3)); }},
    {"cpy_f16", 1e-12, [](ggml_context *c) { return ggml_cast(c, input(c, GGML_TYPE_F32, 96, 3), GGML_TYPE_F16); }},
    {"get_rows_q4_1", 1e-12, [](ggml_context *c) { return ggml_get_rows(c, input(c, GGML_TYPE_Q4_1, 96, 7), input(c, GGML_TYPE_I32, 5)); }},
    {"flash_attn_vec", 1e-5, [](ggml_context *c) { return ggml_flash_attn_ext(c, input(c, GGML_TYPE_F32, 64, 1, 4), input(c, GGML_TYPE_F16, 64, 96, 2), input(c, GGML_TYPE_F16, 64, 96, 2), input(c, GGML_TYPE_F16, 96, 32), root, 0, 0); }},
    {"flash_attn", 1e-5, [](ggml_context *c) { return ggml_flash_attn_ext(c, input(c, GGML_TYPE_F32, 64, 24, 4), input(c, GGML_TYPE_F16, 64, 96, 2), input(c, GGML_TYPE_F16, 64, 96, 2), input(c, GGML_TYPE_F16, 96, 24), root, 0, 0); }},
    {"mul_mv_q8_0", 5e-4, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_Q8_0, 256, 40), input(c, GGML_TYPE_F32, 256)); }},
    {"mul_mv_q4_k", 5e-4, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_Q4_K, 256, 40), input(c, GGML_TYPE_F32, 256)); }},
    {"mul_mm_f16", 1e-5, [](ggml_context *c) { return ggml_mul_mat(c, input(c, GGML_TYPE_F16, 128, 64), input(c, GGML_TYPE_F32, 128, 40)); }},
    {"norm", 1e-10, [](ggml_context *c) { return ggml_norm(c, input(c, GGML_TYPE_F32, 96, 5), 1e-5f); }},
    {"l2_norm", 1e-10, [](ggml_context *c) { return ggml_l2_norm(c, input(c, GGML_TYPE_F32, 96, 5), 1e-5f); }},
    {"sum_rows", 1e-10, [](ggml_context *c) { return ggml_sum_rows(c, input(c, GGML_TYPE_F32, 96, 5)); }},
    {"mean", 1e-10, [](ggml_context *c) { return ggml_mean(c, input(c, GGML_TYPE_F32, 96, 5)); }},
    {"cumsum", 1e-10, [](ggml_context *c) { return ggml_cumsum(c, input(c, GGML_TYPE_F32, 96, 5)); }},
    {"argsort", 0, [](ggml_context *c) { return ggml_argsort(c, input(c, GGML_TYPE_F32, 96, 5), GGML_SORT_ORDER_ASC); }},
    {"argmax", 0, [](ggml_context *c) { return ggml_argmax(c, input(c, GGML_TYPE_F32, 96, 5)); }},
    {"concat", 0, [](ggml_context *c) { return ggml_concat(c, input(c, GGML_TYPE_F32, 96, 5), input(c, GGML_TYPE_F32, 96, 3), 1); }},
    {"repeat", 0, [](ggml_context *c) { return ggml_repeat_4d(c, input(c, GGML_TYPE_F32, 32, 2), 96, 4, 1, 1); }},
    {"cont", 0, [](ggml_context *c) { return ggml_cont(c, ggml_permute(c, input(c, GGML_TYPE_F32, 32, 4, 3), 0, 2, 1, 3)); }},
    {"pad", 0, [](ggml_context *c) { return ggml_pad(c, input(c, GGML_TYPE_F32, 30, 4), 2, 1, 0, 0); }},
    {"silu", 1e-10, [](ggml_context *c) { return ggml_silu(c, input(c, GGML_TYPE_F32, 96, 3)); }},
    {"gelu", 1e-6, [](ggml_context *c) { return ggml_gelu(c, input(c, GGML_TYPE_F32, 96, 3)); }},
    {"scale", 1e-12, [](ggml_context *c) { return ggml_scale(c, input(c, GGML_TYPE_F32, 96, 3), 0.5f); }},
    {"clamp", 0, [](ggml_context *c) { return ggml_clamp(c, input(c, GGML_TYPE_F32, 96, 3), -0.5f, 0.5f); }},
    {"div", 1e-10, [](ggml_context *c) { return ggml_div(c, input(c, GGML_TYPE_F32, 96, 3), ggml_exp(c, input(c, GGML_TYPE_F32, 96, 3))); }},
    {"diag", 0, [](ggml_context *c) { return ggml_diag(c, input(c, GGML_TYPE_F32, 24)); }},
    {"im2col", 1e-6, [](ggml_context *c) { return ggml_im2col(c, input(c, GGML_TYPE_F16, 3, 3, 2, 4), input(c, GGML_TYPE_F32, 12, 10, 2), 1, 1, 0, 0, 1, 1, true, GGML_TYPE_F16); }},
    {"pool_2d", 1e-10, [](ggml_context *c) { return ggml_pool_2d(c, input(c, GGML_TYPE_F32, 12, 10, 2), GGML_OP_POOL_AVG, 2, 2, 2, 2, 0, 0); }},
    {"upscale", 1e-10, [](ggml_context *c) { return ggml_upscale(c, input(c, GGML_TYPE_F32, 12, 10, 2), 2, GGML_SCALE_MODE_NEAREST); }},
    {"group_norm", 1e-10, [](ggml_context *c) { return ggml_group_norm(c, input(c, GGML_TYPE_F32, 12, 10, 4), 2, 1e-5f); }},
};

struct Pool {
  void *p = objc_autoreleasePoolPush();
  ~Pool() { objc_autoreleasePoolPop(p); }
};

void quiet(ggml_log_level level, const char *text, void *) {
  static bool all = getenv("GGMLHOST_LOG");
  if (all || level >= GGML_LOG_LEVEL_WARN) fputs(text, stderr);
}

} // namespace

// ggmlhost_marks says which function marks steps of a capture.
PUBLIC void ggmlhost_marks(void (*mark)(const char *)) { mark_step = mark; }

// ggmlhost_ops runs the cases, or the one of a name, and returns how many differ from the CPU's.
PUBLIC int ggmlhost_ops(const char *only, const char *out) {
  ggmlhost_link();
  ggml_log_set(quiet, nullptr);
  Pool pool;
  FILE *to = fopen(out, "wb");
  ggml_backend_t metal = ggml_backend_metal_init(), cpu = ggml_backend_cpu_init();
  int bad = 0;
  if (!metal || !to) return -1;
  for (const Case &k : cases) {
    if (*only && strcmp(only, k.name)) continue;
    std::vector<uint8_t> raw;
    std::vector<float> got = compute(metal, k, true, &raw), want = compute(cpu, k, false, nullptr);
    write(to, k.name, raw.data(), raw.size());
    double above = 0, below = 0;
    for (size_t i = 0; i < got.size(); i++) above += (double)(got[i] - want[i]) * (got[i] - want[i]), below += (double)want[i] * want[i];
    bool ok = got.size() == want.size() && below > 0 && above / below <= k.error;
    fprintf(stderr, "%-18s %zu values, error %.2g%s\n", k.name, got.size(), above / below, ok ? "" : ": TOO LARGE");
    bad += !ok;
  }
  ggml_backend_free(metal), ggml_backend_free(cpu);
  fclose(to);
  return bad;
}

static std::vector<int64_t> took;

// ggmlhost_took gives the nanoseconds of a processor that the thread which decodes took for each step of ggmlhost_llama behind the prompt,
// and returns how many steps there were. What the device does is done by other threads.
PUBLIC int ggmlhost_took(int64_t *out, int n) {
  for (int i = 0; i < n && i < (int)took.size(); i++) out[i] = took[i];
  return (int)took.size();
}

// ggmlhost_llama decodes with a model: the tokens of a prompt, and then, one by one, those with the highest logits. It writes the
// logits of each step, with its token as a name, and returns how many it has written, or −1.
PUBLIC int ggmlhost_llama(const char *model, const char *out, const int32_t *prompt, int n_prompt, int n, int context) {
  ggmlhost_link();
  llama_log_set(quiet, nullptr);
  Pool pool;
  FILE *to = fopen(out, "wb");
  llama_model_params mp = llama_model_default_params();
  mp.n_gpu_layers = 999, mp.load_mode = LLAMA_LOAD_MODE_NONE;
  llama_model *m = llama_model_load_from_file(model, mp);
  if (!m || !to) return -1;
  llama_context_params cp = llama_context_default_params();
  cp.n_ctx = (uint32_t)context, cp.n_batch = cp.n_ubatch = 64, cp.n_threads = cp.n_threads_batch = 1, cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  llama_context *c = llama_init_from_model(m, cp);
  if (!c) return -1;
  int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(m)), done = 0;
  std::vector<llama_token> next(prompt, prompt + n_prompt);
  for (int i = 0; i < n; i++) {
    step(next.size() > 1 ? "prompt" : "decode");
    timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    if (llama_decode(c, llama_batch_get_one(next.data(), (int32_t)next.size()))) return -1;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    if (next.size() == 1) took.push_back((end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec);
    const float *logits = llama_get_logits_ith(c, -1);
    step(nullptr);
    write(to, std::to_string(next.back()), logits, 4 * (size_t)vocabulary);
    int best = 0;
    for (int k = 1; k < vocabulary; k++)
      if (logits[k] > logits[best]) best = k;
    next = {best}, done++;
  }
  llama_free(c), llama_model_free(m);
  fclose(to);
  return done;
}

// ggmlhost_end destroys what ggml keeps until the program's end, the Metal device first of all. Nothing runs after it.
PUBLIC void ggmlhost_end(void) {
  Pool pool;
  __cxa_finalize(&__dso_handle);
}
