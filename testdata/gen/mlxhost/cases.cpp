// Runs operations of MLX over a table of shapes and prints what MLX sent for each: a line of JSON a case,
//
//	{"op": …, "in": {NAME: [TYPE, SHAPE, STRIDES, OFFSET], …}, "out": [[BUFFER, TYPE, SHAPE, STRIDES, OFFSET], …], "sent": […], further attributes}
//
// with strides in elements, offsets in bytes, and "sent" as runtime.cpp describes it. An operation that MLX refuses has
// "error" in place of "out" and "sent".
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mlx/mlx.h"
#include "runtime.h"

using namespace mlx::core;

namespace {

const char* type_name(Dtype t) {
  switch (t.val()) {
    case Dtype::Val::bool_: return "bool";
    case Dtype::Val::uint8: return "u8";
    case Dtype::Val::uint16: return "u16";
    case Dtype::Val::uint32: return "u32";
    case Dtype::Val::uint64: return "u64";
    case Dtype::Val::int8: return "i8";
    case Dtype::Val::int16: return "i16";
    case Dtype::Val::int32: return "i32";
    case Dtype::Val::int64: return "i64";
    case Dtype::Val::float16: return "f16";
    case Dtype::Val::bfloat16: return "bf16";
    case Dtype::Val::float32: return "f32";
    default: return "other";
  }
}

std::string json(int64_t n) { return std::to_string(n); }
std::string json(int n) { return std::to_string(n); }
std::string json(bool b) { return b ? "true" : "false"; }
std::string json(float f) {
  char s[32];
  snprintf(s, sizeof s, "%g", f);
  return s;
}
std::string json(const char* s) { return "\"" + std::string(s) + "\""; }
std::string json(Dtype t) { return json(type_name(t)); }
std::string json(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}
template <typename T>
std::string json_list(const T& items) {
  std::string out;
  for (auto i : items) {
    out += (out.empty() ? "" : ",") + json(int64_t(i));
  }
  return "[" + out + "]";
}

// A raw array has memory and no contents: nothing is executed.
array raw(Shape shape, Dtype type) {
  size_t n = 1;
  for (auto d : shape) {
    n *= d;
  }
  return array(allocator::malloc(std::max<size_t>(n * type.size(), 1)), std::move(shape), type);
}

// Case is one operation on some arrays.
struct Case {
  std::string attributes; // JSON, of which none is called in, out, sent, error
  std::vector<std::pair<std::string, array>> in;

  explicit Case(const std::string& op) : attributes("\"op\":" + json(op)) {}

  template <typename T>
  Case& with(const char* name, T value) {
    attributes += std::string(",") + json(name) + ":" + json(value);
    return *this;
  }

  // of adds an array. Views of raw arrays are evaluated here, which MLX does without a kernel.
  array of(const char* name, array a) {
    eval(a);
    synchronize();
    in.emplace_back(name, a);
    return a;
  }

  array of(const char* name, Shape shape, Dtype type) { return of(name, raw(std::move(shape), type)); }

  // run evaluates what f makes, and prints the case.
  void run(const std::function<std::vector<array>()>& f) {
    std::string inputs;
    for (auto& [name, a] : in) {
      inputs += (inputs.empty() ? "" : ",") + json(name) + ":" + described(a);
    }
    mlxhost::begin();
    for (auto& [name, a] : in) {
      mlxhost::name(a.buffer().ptr(), name);
    }
    std::string result;
    try {
      std::vector<array> out = f();
      eval(out);
      synchronize();
      std::string sent = mlxhost::end();
      for (auto& a : out) {
        result += (result.empty() ? "" : ",") + described(a, true);
      }
      result = "\"out\":[" + result + "],\"sent\":[" + sent + "]";
    } catch (const std::exception& e) {
      mlxhost::end();
      result = "\"error\":" + json(std::string(e.what()));
    }
    printf("{%s,\"in\":{%s},%s}\n", attributes.c_str(), inputs.c_str(), result.c_str());
    clear_cache();
  }

  static std::string described(const array& a, bool named = false) {
    std::string out = "[";
    if (named) {
      out += json(mlxhost::name_of(a.buffer().ptr())) + ",";
    }
    return out + json(a.dtype()) + "," + json_list(a.shape()) + "," + json_list(a.strides()) + "," + json(int64_t(a.offset())) + "]";
  }
};

const std::vector<Dtype> floats = {float32, float16, bfloat16};
const std::vector<int> all_bits = {2, 3, 4, 5, 6, 8};
const std::vector<int> all_groups = {32, 64, 128};

struct Quantized {
  array w, scales, biases;
};

// quantized adds a matrix [..., N, K], or [..., K, N] if it is not transposed.
Quantized quantized(Case& c, Shape batch, int n, int k, bool transpose, int bits, int group, Dtype type) {
  const int rows = transpose ? n : k;
  const int row = transpose ? k : n;
  auto shaped = [&](int last) {
    Shape s = batch;
    s.push_back(rows);
    s.push_back(last);
    return s;
  };
  return {c.of("w", shaped(row * bits / 32), uint32), c.of("scales", shaped(row / group), type), c.of("biases", shaped(row / group), type)};
}

void quantized_matmul_case(Shape x_batch, Shape w_batch, int m, int n, int k, bool transpose, int bits, int group, Dtype type) {
  Case c("quantized_matmul");
  c.with("transpose", transpose).with("bits", bits).with("group", group).with("type", type).with("m", m).with("n", n).with("k", k);
  Shape s = x_batch;
  s.push_back(m);
  s.push_back(k);
  array x = c.of("x", s, type);
  Quantized q = quantized(c, w_batch, n, k, transpose, bits, group, type);
  c.run([&] { return std::vector<array>{quantized_matmul(x, q.w, q.scales, q.biases, transpose, group, bits)}; });
}

// Both sides of each boundary of a route: rows of x by generation and size of the matrix, steps of qmv_fast, K of qmv_quad and
// qvm_split_k, tiles of 32, and the matrices of models.
void quantized_matmuls() {
  const std::vector<std::pair<int, int>> sizes = {
      {64, 64}, {128, 128}, {32, 512}, {40, 512}, {36, 512}, {512, 256}, {576, 576}, {1536, 576}, {576, 1536}, {192, 576}, {49152, 576}, {1000, 1024},
      {2048, 2048}, {2080, 2048}, {2048, 2560}, {4096, 4096}, {4128, 4096}, {4096, 14336}, {1024, 8192}, {1024, 8320}, {128, 896}, {128, 1024},
  };
  const std::vector<int> rows = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 24, 25, 26, 32, 33, 34, 64, 100};
  for (bool transpose : {true, false}) {
    for (auto [n, k] : sizes) {
      for (int m : rows) {
        quantized_matmul_case({}, {}, m, n, k, transpose, 4, 64, float16);
      }
    }
  }
  for (Dtype type : floats) {
    for (int bits : all_bits) {
      for (int group : all_groups) {
        for (bool transpose : {true, false}) {
          for (auto [m, n, k] : std::vector<std::tuple<int, int, int>>{{1, 128, 128}, {1, 512, 2048}, {1, 520, 1280}, {3, 256, 896}, {40, 256, 512}}) {
            quantized_matmul_case({}, {}, m, n, k, transpose, bits, group, type);
          }
        }
      }
    }
  }
  for (bool transpose : {true, false}) {
    for (int m : {1, 3, 8, 40}) {
      for (int k : {128, 512, 2048}) {
        quantized_matmul_case({2}, {}, m, 256, k, transpose, 4, 64, float16);
        quantized_matmul_case({2}, {2}, m, 256, k, transpose, 4, 64, float16);
        quantized_matmul_case({2, 3}, {2, 3}, m, 256, k, transpose, 4, 64, float16);
        quantized_matmul_case({2, 3}, {1, 3}, m, 256, k, transpose, 4, 64, float16);
      }
    }
  }
  // x that is not contiguous.
  for (int m : {1, 4, 40}) {
    Case c("quantized_matmul");
    c.with("transpose", true).with("bits", 4).with("group", 64).with("type", float16).with("m", m).with("n", 512).with("k", 512);
    array x = c.of("x", swapaxes(raw({512, m}, float16), 0, 1));
    Quantized q = quantized(c, {}, 512, 512, true, 4, 64, float16);
    c.run([&] { return std::vector<array>{quantized_matmul(x, q.w, q.scales, q.biases, true, 64, 4)}; });
  }
}

void gather_qmms() {
  for (Dtype type : floats) {
    for (int bits : {4, 8, 3}) {
      for (bool transpose : {true, false}) {
        for (bool sorted : {false, true}) {
          for (int tokens : {1, 2, 16, 33, 64, 200}) {
            for (auto [n, k] : std::vector<std::pair<int, int>>{{256, 512}, {260, 576}, {1024, 2048}}) {
              if (!transpose && n % 64 != 0) {
                continue;
              }
              Case c("gather_qmm");
              c.with("transpose", transpose).with("bits", bits).with("group", 64).with("type", type).with("sorted", sorted);
              array x = c.of("x", {tokens, 1, 1, k}, type);
              Quantized q = quantized(c, {8}, n, k, transpose, bits, 64, type);
              array rhs = c.of("rhs", {tokens, 2}, uint32);
              c.run([&] { return std::vector<array>{gather_qmm(x, q.w, q.scales, q.biases, std::nullopt, rhs, transpose, 64, bits, "affine", sorted)}; });
            }
          }
          for (int m : {1, 3, 14, 32, 64}) {
            Case c("gather_qmm");
            c.with("transpose", transpose).with("bits", bits).with("group", 64).with("type", type).with("sorted", sorted);
            array x = c.of("x", {4, m, 512}, type);
            Quantized q = quantized(c, {4}, 512, 512, transpose, bits, 64, type);
            array lhs = c.of("lhs", {3, 2}, uint32);
            array rhs = c.of("rhs", {3, 2}, uint32);
            c.run([&] { return std::vector<array>{gather_qmm(x, q.w, q.scales, q.biases, lhs, rhs, transpose, 64, bits, "affine", sorted)}; });
          }
        }
      }
    }
  }
}

void quantizes() {
  for (Dtype type : floats) {
    for (int bits : all_bits) {
      for (int group : all_groups) {
        for (auto [n, k] : std::vector<std::pair<int, int>>{{1, 128}, {64, 512}, {1000, 256}}) {
          {
            Case c("quantize");
            c.with("bits", bits).with("group", group).with("type", type);
            array w = c.of("w", {n, k}, type);
            c.run([&] { return quantize(w, group, bits); });
          }
          Case c("dequantize");
          c.with("bits", bits).with("group", group).with("type", type);
          Quantized q = quantized(c, {}, n, k, true, bits, group, type);
          c.run([&] { return std::vector<array>{dequantize(q.w, q.scales, q.biases, group, bits)}; });
        }
      }
    }
  }
}

using Function = std::function<std::vector<array>(const std::vector<array>&)>;

// gradient runs a function backwards.
void gradient(Case& c, const std::vector<array>& primals, const array& cotangent, const Function& f) {
  c.run([&] { return vjp(f, primals, {cotangent}).second; });
}

void norms() {
  for (Dtype type : floats) {
    for (int rows : {1, 2, 7, 600}) {
      for (int axis : {1, 4, 64, 576, 1024, 4096, 4097, 6656, 6657, 8192, 8193, 10000}) {
        if (rows == 600 && axis > 1024) {
          continue;
        }
        const float eps = 1e-5f;
        for (bool weight : {true, false}) {
          {
            Case c("rms_norm");
            c.with("type", type).with("eps", eps);
            array x = c.of("x", {rows, axis}, type);
            std::optional<array> w;
            if (weight) {
              w = c.of("w", {axis}, type);
            }
            c.run([&] { return std::vector<array>{fast::rms_norm(x, w, eps)}; });
          }
          {
            Case c("rms_norm_vjp");
            c.with("type", type).with("eps", eps);
            array x = c.of("x", {rows, axis}, type);
            array g = c.of("g", {rows, axis}, type);
            std::vector<array> primals = {x};
            if (weight) {
              primals.push_back(c.of("w", {axis}, type));
            }
            gradient(c, primals, g, [&](const std::vector<array>& a) {
              return std::vector<array>{fast::rms_norm(a[0], a.size() > 1 ? std::optional<array>(a[1]) : std::nullopt, eps)};
            });
          }
        }
        for (int which = 0; which < 3; which++) { // with nothing, a weight, a weight and a bias
          {
            Case c("layer_norm");
            c.with("type", type).with("eps", eps);
            array x = c.of("x", {rows, axis}, type);
            std::optional<array> w, b;
            if (which > 0) {
              w = c.of("w", {axis}, type);
            }
            if (which > 1) {
              b = c.of("b", {axis}, type);
            }
            c.run([&] { return std::vector<array>{fast::layer_norm(x, w, b, eps)}; });
          }
          Case c("layer_norm_vjp");
          c.with("type", type).with("eps", eps);
          std::vector<array> primals = {c.of("x", {rows, axis}, type)};
          array g = c.of("g", {rows, axis}, type);
          if (which > 0) {
            primals.push_back(c.of("w", {axis}, type));
          }
          if (which > 1) {
            primals.push_back(c.of("b", {axis}, type));
          }
          gradient(c, primals, g, [&](const std::vector<array>& a) {
            return std::vector<array>{fast::layer_norm(
                a[0], a.size() > 1 ? std::optional<array>(a[1]) : std::nullopt, a.size() > 2 ? std::optional<array>(a[2]) : std::nullopt, eps)};
          });
        }
      }
    }
    // Gradients that come from a sum: g is one element under strides of 0. And x under strides.
    for (bool layer : {false, true}) {
      {
        Case c(layer ? "layer_norm_vjp" : "rms_norm_vjp");
        c.with("type", type).with("eps", 1e-5f);
        std::vector<array> primals = {c.of("x", {8, 512}, type), c.of("w", {512}, type)};
        array g = c.of("g", broadcast_to(raw({1}, type), {8, 512}));
        gradient(c, primals, g, [&](const std::vector<array>& a) {
          return std::vector<array>{layer ? fast::layer_norm(a[0], a[1], std::nullopt, 1e-5f) : fast::rms_norm(a[0], a[1], 1e-5f)};
        });
      }
      Case c(layer ? "layer_norm" : "rms_norm");
      c.with("type", type).with("eps", 1e-5f);
      array x = c.of("x", swapaxes(raw({512, 8}, type), 0, 1));
      array w = c.of("w", {512}, type);
      c.run([&] { return std::vector<array>{layer ? fast::layer_norm(x, w, std::nullopt, 1e-5f) : fast::rms_norm(x, w, 1e-5f)}; });
    }
  }
}

void ropes() {
  for (Dtype type : floats) {
    for (bool traditional : {false, true}) {
      for (int length : {1, 7, 64}) {
        for (auto [heads, dim, dims] : std::vector<std::tuple<int, int, int>>{{9, 64, 64}, {3, 64, 32}, {32, 128, 128}, {1, 80, 80}}) {
          for (int how = 0; how < 4; how++) { // an offset of the host, of memory; frequencies; heads behind positions
            Case c("rope");
            c.with("type", type).with("traditional", traditional).with("dims", dims).with("how", how);
            array x = how == 3 ? c.of("x", swapaxes(raw({1, length, heads, dim}, type), 1, 2)) : c.of("x", {1, heads, length, dim}, type);
            if (how == 1) {
              array offset = c.of("offset", Shape{1}, int32);
              c.run([&] { return std::vector<array>{fast::rope(x, dims, traditional, 10000.0f, 1.0f, offset)}; });
            } else if (how == 2) {
              array freqs = c.of("freqs", Shape{dims / 2}, float32);
              c.run([&] { return std::vector<array>{fast::rope(x, dims, traditional, std::nullopt, 0.5f, 17, freqs)}; });
            } else {
              c.run([&] { return std::vector<array>{fast::rope(x, dims, traditional, 10000.0f, 1.0f, 17)}; });
            }
          }
        }
      }
    }
  }
}

void attentions() {
  struct Sizes {
    int q_heads, kv_heads, dim, q, kv;
  };
  std::vector<Sizes> sizes;
  for (int dim : {64, 72, 80, 96, 128, 256}) {
    for (auto [q, kv] : std::vector<std::pair<int, int>>{{1, 1}, {1, 64}, {1, 1023}, {1, 1024}, {1, 5000}, {4, 128}, {8, 512}, {9, 512}, {33, 33}, {64, 1000}}) {
      sizes.push_back({9, 3, dim, q, kv});
      sizes.push_back({4, 4, dim, q, kv});
    }
  }
  for (Dtype type : floats) {
    for (auto s : sizes) {
      for (int how = 0; how < 5; how++) { // no mask, causal, boolean, additive, sinks
        if (type != float16 && (how > 1 || s.q_heads == 4)) {
          continue;
        }
        Case c("scaled_dot_product_attention");
        c.with("type", type).with("how", how);
        array q = c.of("q", {1, s.q_heads, s.q, s.dim}, type);
        array k = c.of("k", {1, s.kv_heads, s.kv, s.dim}, type);
        array v = c.of("v", {1, s.kv_heads, s.kv, s.dim}, type);
        std::optional<array> mask, sinks;
        if (how == 2) {
          mask = c.of("mask", {s.q, s.kv}, bool_);
        } else if (how == 3) {
          mask = c.of("mask", {s.q, s.kv}, type);
        } else if (how == 4) {
          sinks = c.of("sinks", Shape{s.q_heads}, type);
        }
        c.run([&] { return std::vector<array>{fast::scaled_dot_product_attention(q, k, v, 0.125f, how == 1 ? "causal" : "", mask, sinks)}; });
      }
    }
    // Both sides of what decides into how many blocks keys are split, and keys wider than values.
    if (type == float16) {
      std::vector<std::pair<Sizes, int>> more;
      for (int kv : {1025, 2000, 8191, 8192, 8193, 16383, 16384, 32769, 65535, 65537}) {
        more.push_back({{8, 1, 64, 1, kv}, 64});
        more.push_back({{6, 3, 64, 1, kv}, 64});
        more.push_back({{10, 2, 128, 1, kv}, 128});
        more.push_back({{8, 2, 64, 2, kv}, 64});
        more.push_back({{6, 2, 192, 1, kv}, 128});
      }
      for (auto& [s, values] : more) {
        Case c("scaled_dot_product_attention");
        c.with("type", type).with("how", 0);
        array q = c.of("q", {1, s.q_heads, s.q, s.dim}, type);
        array k = c.of("k", {1, s.kv_heads, s.kv, s.dim}, type);
        array v = c.of("v", {1, s.kv_heads, s.kv, values}, type);
        c.run([&] { return std::vector<array>{fast::scaled_dot_product_attention(q, k, v, 0.125f)}; });
      }
    }
    // A cache of which a part is used: keys and values lie under strides.
    for (int kv : {1, 100, 1500}) {
      Case c("scaled_dot_product_attention");
      c.with("type", type).with("how", 0);
      array q = c.of("q", {1, 9, 1, 64}, type);
      array k = c.of("k", slice(raw({1, 3, 2048, 64}, type), {0, 0, 0, 0}, {1, 3, kv, 64}));
      array v = c.of("v", slice(raw({1, 3, 2048, 64}, type), {0, 0, 0, 0}, {1, 3, kv, 64}));
      c.run([&] { return std::vector<array>{fast::scaled_dot_product_attention(q, k, v, 0.125f)}; });
    }
  }
}

void softmaxes() {
  for (Dtype type : floats) {
    for (bool precise : {false, true}) {
      for (int rows : {1, 9}) {
        for (int axis : {1, 64, 1000, 4096, 4097, 49152}) {
          Case c("softmax");
          c.with("type", type).with("precise", precise);
          array x = c.of("x", {rows, axis}, type);
          c.run([&] { return std::vector<array>{softmax(x, -1, precise)}; });
        }
      }
    }
    for (int axis : {64, 4096, 4097}) {
      Case c("logsumexp");
      c.with("type", type);
      array x = c.of("x", {3, axis}, type);
      c.run([&] { return std::vector<array>{logsumexp(x, -1)}; });
    }
  }
}

void matmuls() {
  for (Dtype type : floats) {
    for (bool a_turned : {false, true}) {
      for (bool b_turned : {false, true}) {
        for (auto [m, n, k] : std::vector<std::tuple<int, int, int>>{
                 {1, 1, 64},   {1, 3, 64},     {1, 64, 64},      {1, 64, 65},    {1, 576, 576},   {1, 1536, 576},  {1, 576, 1536}, {1, 4096, 512}, {1, 49152, 576}, {1, 64, 1024},
                 {2, 64, 64},  {7, 576, 576},  {16, 64, 64},     {32, 32, 32},   {33, 47, 65},    {64, 576, 1536}, {64, 64, 8192}, {16, 16, 4096}, {512, 512, 512}, {1000, 1536, 576},
                 {2048, 2048, 256}, {64, 1, 64}, {576, 1, 1536}}) {
          Case c("matmul");
          c.with("type", type);
          array a = a_turned ? c.of("a", swapaxes(raw({k, m}, type), 0, 1)) : c.of("a", {m, k}, type);
          array b = b_turned ? c.of("b", swapaxes(raw({n, k}, type), 0, 1)) : c.of("b", {k, n}, type);
          c.run([&] { return std::vector<array>{matmul(a, b)}; });
        }
      }
    }
    for (int batch : {2, 9}) {
      for (int m : {1, 5, 64}) {
        Case c("matmul");
        c.with("type", type);
        array a = c.of("a", {batch, m, 64}, type);
        array b = c.of("b", swapaxes(raw({batch, 128, 64}, type), 1, 2));
        c.run([&] { return std::vector<array>{matmul(a, b)}; });
      }
    }
    // Both sides of what is split along K, on chips of both kinds, and of large results.
    for (auto [m, n, k] : std::vector<std::tuple<int, int, int>>{{528, 512, 544}, {528, 512, 512}, {1024, 512, 1024}, {1040, 512, 1040}, {1024, 1024, 128},
             {1024, 1024, 4096}, {1024, 1008, 4096}, {768, 1024, 8192}}) {
      for (bool b_turned : {false, true}) {
        Case c("matmul");
        c.with("type", type);
        array a = c.of("a", {m, k}, type);
        array b = b_turned ? c.of("b", swapaxes(raw({n, k}, type), 0, 1)) : c.of("b", {k, n}, type);
        c.run([&] { return std::vector<array>{matmul(a, b)}; });
      }
    }
    for (int m : {1, 40}) {
      Case c("addmm");
      c.with("type", type);
      array r = c.of("c", {m, 256}, type);
      array a = c.of("a", {m, 128}, type);
      array b = c.of("b", {128, 256}, type);
      c.run([&] { return std::vector<array>{addmm(r, a, b)}; });
    }
    for (int rows : {2, 7, 14, 16, 70}) {
      for (bool b_turned : {false, true}) {
        Case c("gather_mm");
        c.with("type", type).with("sorted", false);
        array a = c.of("a", {4, rows, 128}, type);
        array b = b_turned ? c.of("b", swapaxes(raw({8, 256, 128}, type), 1, 2)) : c.of("b", {8, 128, 256}, type);
        array lhs = c.of("lhs", {3, 2}, uint32);
        array rhs = c.of("rhs", {3, 2}, uint32);
        c.run([&] { return std::vector<array>{gather_mm(a, b, lhs, rhs, false)}; });
      }
    }
    for (int tokens : {1, 40, 200}) {
      for (bool sorted : {false, true}) {
        Case c("gather_mm");
        c.with("type", type).with("sorted", sorted);
        array a = c.of("a", {tokens, 1, 128}, type);
        array b = c.of("b", swapaxes(raw({8, 256, 128}, type), 1, 2));
        array rhs = c.of("rhs", {tokens}, uint32);
        c.run([&] { return std::vector<array>{gather_mm(a, b, std::nullopt, rhs, sorted)}; });
      }
    }
  }
}

// The layouts in which arguments of elementwise operations lie.
struct Layout {
  const char* name;
  std::function<array(Dtype)> make;
};

const std::vector<Layout> layouts = {
    {"row", [](Dtype t) { return raw({64, 576}, t); }},
    {"small", [](Dtype t) { return raw({3}, t); }},
    {"large", [](Dtype t) { return raw({1024, 4096}, t); }},
    {"turned", [](Dtype t) { return swapaxes(raw({576, 64}, t), 0, 1); }},
    {"scalar", [](Dtype t) { return raw({}, t); }},
    {"broadcast", [](Dtype t) { return broadcast_to(raw({576}, t), {64, 576}); }},
    {"column", [](Dtype t) { return broadcast_to(raw({64, 1}, t), {64, 576}); }},
    {"part", [](Dtype t) { return slice(raw({64, 600}, t), {0, 8}, {64, 584}); }},
    {"steps", [](Dtype t) { return slice(raw({128, 1152}, t), {0, 0}, {128, 1152}, {2, 2}); }},
    {"three", [](Dtype t) { return swapaxes(raw({4, 5, 6}, t), 0, 2); }},
    {"four", [](Dtype t) { return transpose(raw({2, 3, 4, 5}, t), {3, 1, 2, 0}); }},
    {"five", [](Dtype t) { return transpose(raw({2, 3, 2, 3, 2}, t), {4, 3, 2, 1, 0}); }},
};

void elementwise() {
  using Unary = array (*)(const array&, StreamOrDevice);
  const std::vector<std::pair<const char*, Unary>> unary = {
      {"abs", abs},     {"negative", negative}, {"exp", exp},   {"log", log},       {"log1p", log1p}, {"sqrt", sqrt},       {"rsqrt", rsqrt}, {"square", square},
      {"sigmoid", sigmoid}, {"tanh", tanh},     {"erf", erf},   {"sin", sin},       {"cos", cos},     {"floor", floor},     {"ceil", ceil},   {"sign", sign},
      {"expm1", expm1}, {"reciprocal", reciprocal}, {"isnan", [](const array& a, StreamOrDevice s) { return isnan(a, s); }}, {"logical_not", logical_not},
  };
  for (auto [name, f] : unary) {
    for (Dtype type : floats) {
      Case c(name);
      c.with("type", type);
      array x = c.of("x", {64, 576}, type);
      c.run([&] { return std::vector<array>{f(x, {})}; });
    }
  }
  for (const Layout& l : layouts) {
    Case c("exp");
    c.with("type", float16).with("layout", l.name);
    array x = c.of("x", l.make(float16));
    c.run([&] { return std::vector<array>{exp(x)}; });
  }
  using Binary = array (*)(const array&, const array&, StreamOrDevice);
  const std::vector<std::pair<const char*, Binary>> binary = {
      {"add", add},         {"subtract", subtract}, {"multiply", multiply},   {"divide", divide}, {"maximum", maximum}, {"minimum", minimum}, {"power", power},
      {"equal", [](const array& a, const array& b, StreamOrDevice s) { return equal(a, b, s); }},  {"less", less}, {"greater_equal", greater_equal}, {"logical_and", logical_and},
      {"remainder", remainder}, {"logaddexp", logaddexp}, {"floor_divide", floor_divide},
  };
  for (auto [name, f] : binary) {
    for (Dtype type : {float32, float16, bfloat16, int32, uint32}) {
      Case c(name);
      c.with("type", type);
      array a = c.of("a", {64, 576}, type);
      array b = c.of("b", {64, 576}, type);
      c.run([&] { return std::vector<array>{f(a, b, {})}; });
    }
  }
  for (const Layout& l : layouts) {
    for (const Layout& m : layouts) {
      array a = l.make(float16);
      array b = m.make(float16);
      if (a.shape() != b.shape() && a.ndim() != 0 && b.ndim() != 0) {
        continue;
      }
      Case c("add");
      c.with("type", float16).with("layout", l.name).with("layout_b", m.name);
      a = c.of("a", a);
      b = c.of("b", b);
      c.run([&] { return std::vector<array>{add(a, b)}; });
    }
  }
  for (Dtype type : {float32, float16, bfloat16, int32}) {
    for (const Layout& l : layouts) {
      Case c("where");
      c.with("type", type).with("layout", l.name);
      array a = c.of("a", l.make(type));
      array condition = c.of("condition", a.shape(), bool_);
      array b = c.of("b", {}, type);
      c.run([&] { return std::vector<array>{where(condition, a, b)}; });
    }
  }
}

void copies() {
  const std::vector<Dtype> types = {bool_, uint8, int8, uint16, int16, uint32, int32, int64, float16, bfloat16, float32};
  for (Dtype from : types) {
    for (Dtype to : types) {
      if (from == to) {
        continue;
      }
      Case c("astype");
      c.with("from", from).with("to", to);
      array x = c.of("x", {64, 576}, from);
      c.run([&] { return std::vector<array>{astype(x, to)}; });
    }
  }
  for (Dtype type : {uint8, float16, float32}) {
    for (const Layout& l : layouts) {
      Case c("contiguous");
      c.with("type", type).with("layout", l.name);
      array x = c.of("x", l.make(type));
      c.run([&] { return std::vector<array>{contiguous(x)}; });
    }
    {
      Case c("concatenate");
      c.with("type", type);
      array a = c.of("a", {3, 5, 64}, type);
      array b = c.of("b", {3, 2, 64}, type);
      c.run([&] { return std::vector<array>{concatenate({a, b}, 1)}; });
    }
    {
      Case c("slice_update");
      c.with("type", type);
      array a = c.of("a", {1, 3, 256, 64}, type);
      array b = c.of("b", {1, 3, 1, 64}, type);
      c.run([&] { return std::vector<array>{slice_update(a, b, {0, 0, 17, 0}, {1, 3, 18, 64})}; });
    }
    {
      Case c("slice_update_dynamic");
      c.with("type", type);
      array a = c.of("a", {1, 3, 256, 64}, type);
      array b = c.of("b", {1, 3, 1, 64}, type);
      array at = c.of("start", Shape{1}, int32);
      c.run([&] { return std::vector<array>{slice_update(a, b, at, {2})}; });
    }
    {
      Case c("slice_dynamic");
      c.with("type", type);
      array a = c.of("a", {1, 3, 256, 64}, type);
      array at = c.of("start", Shape{1}, int32);
      c.run([&] { return std::vector<array>{slice(a, at, {2}, {1, 3, 16, 64})}; });
    }
    {
      Case c("full");
      c.with("type", type);
      array v = c.of("v", {}, type);
      c.run([&] { return std::vector<array>{full({64, 576}, v)}; });
    }
    if (type != uint8) {
      Case c("arange");
      c.with("type", type);
      c.run([&] { return std::vector<array>{arange(0, 1000, 1, type)}; });
    }
  }
}

void reductions() {
  using Reduce = array (*)(const array&, const std::vector<int>&, bool, StreamOrDevice);
  const std::vector<std::pair<const char*, Reduce>> reduce = {{"sum", sum}, {"prod", prod}, {"max", max}, {"min", min}, {"all", all}, {"any", any}};
  const std::vector<std::pair<Shape, std::vector<int>>> shapes = {
      {{576}, {0}},        {{1 << 20}, {0}},      {{3000000}, {0}},   {{64, 576}, {1}},        {{64, 576}, {0}},     {{64, 576}, {0, 1}}, {{2, 7}, {0}},         {{2, 7}, {1}},
      {{1000, 32}, {1}},   {{1000, 4096}, {1}},   {{4, 100000}, {1}}, {{100000, 4}, {0}},      {{8, 64, 128}, {1}},  {{8, 64, 128}, {0, 2}}, {{8, 64, 128}, {1, 2}}, {{4, 2048, 1024}, {1}},
      {{32, 512, 3}, {1}}, {{512, 16, 2048}, {0}}, {{5, 6, 7, 8}, {1, 3}}, {{5, 6, 7, 8}, {0, 2}},
  };
  for (auto& [shape, axes] : shapes) {
    for (Dtype type : {float32, float16, bfloat16, int32}) {
      Case c("sum");
      c.with("type", type);
      array x = c.of("x", shape, type);
      c.run([&] { return std::vector<array>{sum(x, axes, false)}; });
    }
  }
  // Both sides of what decides how columns are reduced, and layouts that are not row-contiguous.
  for (auto& [shape, axes] : std::vector<std::pair<Shape, std::vector<int>>>{{{31, 64}, {0}}, {{32, 64}, {0}}, {{256, 64}, {0}}, {{257, 64}, {0}}, {{1023, 31}, {0}},
           {{1024, 31}, {0}}, {{1024, 32}, {0}}, {{300, 32767}, {0}}, {{300, 32800}, {0}}, {{40000, 8}, {0}}, {{64, 65}, {1}}, {{31, 65}, {1}}, {{70, 9, 8}, {0, 2}}, {{9, 70, 64}, {0, 2}}}) {
    Case c("sum");
    c.with("type", float16);
    array x = c.of("x", shape, float16);
    c.run([&] { return std::vector<array>{sum(x, axes, false)}; });
  }
  const std::vector<array> views = {
      swapaxes(raw({48, 64}, float16), 0, 1), transpose(raw({5, 40, 48}, float16), {1, 2, 0}), transpose(raw({5, 40, 48}, float16), {2, 0, 1}),
      broadcast_to(raw({48}, float16), {64, 48}), broadcast_to(raw({64, 1}, float16), {64, 48}), slice(raw({64, 60}, float16), {0, 8}, {64, 56}),
      slice(raw({128, 96}, float16), {0, 0}, {128, 96}, {2, 2}),
  };
  for (const array& view : views) {
    for (int axis = 0; axis < view.ndim(); axis++) {
      Case c("sum");
      c.with("type", float16);
      array x = c.of("x", view);
      c.run([&] { return std::vector<array>{sum(x, std::vector<int>{axis}, false)}; });
    }
  }
  for (auto [name, f] : reduce) {
    for (Dtype type : {float32, float16, bfloat16, int32, bool_}) {
      for (int axis : {0, 1}) {
        Case c(name);
        c.with("type", type);
        array x = c.of("x", {64, 576}, type);
        c.run([&] { return std::vector<array>{f(x, {axis}, false, {})}; });
      }
    }
  }
  for (Dtype type : {float32, float16, bfloat16, int32}) {
    for (auto& [shape, axis] : std::vector<std::pair<Shape, int>>{{{49152}, 0}, {{3, 1000}, 1}, {{64, 576}, 0}, {{2, 3, 4}, 1}}) {
      for (bool most : {true, false}) {
        Case c(most ? "argmax" : "argmin");
        c.with("type", type);
        array x = c.of("x", shape, type);
        c.run([&] { return std::vector<array>{most ? argmax(x, axis) : argmin(x, axis)}; });
      }
      for (bool reverse : {false, true}) {
        for (bool inclusive : {true, false}) {
          Case c("cumsum");
          c.with("type", type).with("reverse", reverse).with("inclusive", inclusive);
          array x = c.of("x", shape, type);
          c.run([&] { return std::vector<array>{cumsum(x, axis, reverse, inclusive)}; });
        }
      }
      for (bool arg : {false, true}) {
        Case c(arg ? "argsort" : "sort");
        c.with("type", type);
        array x = c.of("x", shape, type);
        c.run([&] { return std::vector<array>{arg ? argsort(x, axis) : sort(x, axis)}; });
      }
    }
  }
}

void indexing() {
  for (Dtype type : {float32, float16, bfloat16}) {
    for (int n : {1, 7, 300}) {
      {
        Case c("take");
        c.with("type", type);
        array table = c.of("table", {1000, 576}, type);
        array ids = c.of("ids", {n}, uint32);
        c.run([&] { return std::vector<array>{take(table, ids, 0)}; });
      }
      {
        Case c("take_along_axis");
        c.with("type", type);
        array a = c.of("a", {n, 100}, type);
        array ids = c.of("ids", {n, 8}, uint32);
        c.run([&] { return std::vector<array>{take_along_axis(a, ids, 1)}; });
      }
      {
        Case c("put_along_axis");
        c.with("type", type);
        array a = c.of("a", {n, 100}, type);
        array ids = c.of("ids", {n, 8}, uint32);
        array values = c.of("values", {n, 8}, type);
        c.run([&] { return std::vector<array>{put_along_axis(a, ids, values, 1)}; });
      }
      Case c("scatter_add");
      c.with("type", type);
      array a = c.of("a", {1000, 64}, type);
      array ids = c.of("ids", {n}, uint32);
      array updates = c.of("updates", {n, 1, 64}, type);
      c.run([&] { return std::vector<array>{scatter_add(a, ids, updates, 0)}; });
    }
  }
}

// A step of a decoder as engines on MLX write it: norms, quantized products, rope, a cache, attention, silu and residuals.
void decoder(Dtype type, int layers, int length, int cache, int bits, int group) {
  const int width = 576, heads = 9, kv_heads = 3, dim = 64, hidden = 1536, vocabulary = 49152;
  Case c("decoder");
  c.with("type", type).with("layers", layers).with("length", length).with("cache", cache).with("bits", bits).with("group", group);
  auto matrix = [&](const std::string& name, int n, int k) {
    return Quantized{c.of((name + ".w").c_str(), {n, k * bits / 32}, uint32), c.of((name + ".scales").c_str(), {n, k / group}, type),
                     c.of((name + ".biases").c_str(), {n, k / group}, type)};
  };
  auto product = [&](const array& x, const Quantized& q) { return quantized_matmul(x, q.w, q.scales, q.biases, true, group, bits); };
  struct Layer {
    array norm, norm2;
    Quantized q, k, v, o, gate, up, down;
    array keys, values;
  };
  array ids = c.of("ids", {1, length}, uint32);
  Quantized embedding = matrix("embedding", vocabulary, width);
  std::vector<Layer> all;
  for (int i = 0; i < layers; i++) {
    const std::string p = "l" + std::to_string(i) + ".";
    all.push_back({c.of((p + "norm").c_str(), {width}, type), c.of((p + "norm2").c_str(), {width}, type), matrix(p + "q", heads * dim, width),
                   matrix(p + "k", kv_heads * dim, width), matrix(p + "v", kv_heads * dim, width), matrix(p + "o", width, heads * dim),
                   matrix(p + "gate", hidden, width), matrix(p + "up", hidden, width), matrix(p + "down", width, hidden),
                   c.of((p + "keys").c_str(), {1, kv_heads, 256, dim}, type), c.of((p + "values").c_str(), {1, kv_heads, 256, dim}, type)});
  }
  array last = c.of("norm", {width}, type);
  c.run([&] {
    std::vector<array> out;
    array x = dequantize(take(embedding.w, ids, 0), take(embedding.scales, ids, 0), take(embedding.biases, ids, 0), group, bits);
    for (Layer& l : all) {
      array n = fast::rms_norm(x, l.norm, 1e-5f);
      auto split = [&](const array& a, int h) { return transpose(reshape(a, {1, length, h, dim}), {0, 2, 1, 3}); };
      array q = fast::rope(split(product(n, l.q), heads), dim, false, 10000.0f, 1.0f, cache);
      array k = fast::rope(split(product(n, l.k), kv_heads), dim, false, 10000.0f, 1.0f, cache);
      array v = split(product(n, l.v), kv_heads);
      array keys = slice_update(l.keys, k, {0, 0, cache, 0}, {1, kv_heads, cache + length, dim});
      array values = slice_update(l.values, v, {0, 0, cache, 0}, {1, kv_heads, cache + length, dim});
      out.push_back(keys);
      out.push_back(values);
      array a = fast::scaled_dot_product_attention(
          q, slice(keys, {0, 0, 0, 0}, {1, kv_heads, cache + length, dim}), slice(values, {0, 0, 0, 0}, {1, kv_heads, cache + length, dim}), 0.125f,
          length > 1 ? "causal" : "");
      x = add(x, product(reshape(transpose(a, {0, 2, 1, 3}), {1, length, heads * dim}), l.o));
      n = fast::rms_norm(x, l.norm2, 1e-5f);
      array gate = product(n, l.gate);
      x = add(x, product(multiply(multiply(gate, sigmoid(gate)), product(n, l.up)), l.down));
    }
    out.insert(out.begin(), product(fast::rms_norm(x, last, 1e-5f), embedding));
    return out;
  });
}

} // namespace

int main(int argc, char** argv) {
  quantized_matmuls();
  gather_qmms();
  quantizes();
  norms();
  ropes();
  attentions();
  softmaxes();
  matmuls();
  elementwise();
  copies();
  reductions();
  indexing();
  for (Dtype type : floats) {
    for (int length : {1, 5, 40}) {
      decoder(type, 2, length, 17, 4, 64);
    }
  }
  return 0;
}
