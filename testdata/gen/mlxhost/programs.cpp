// Programs on MLX that are captured: they know nothing of it. Each writes what it computes to a file, of which a test compares
// every byte with what the graph of the capture computes:
//
//	u32 LENGTH, NAME, u32 BYTES, DATA    for each output, little-endian
#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "mlx/mlx.h"
#include "mlx/backend/metal/metal.h"

using namespace mlx::core;

namespace {

FILE* out;

void put(const void* data, size_t n) {
  uint32_t length = n;
  fwrite(&length, 4, 1, out);
  fwrite(data, 1, n, out);
}

// say writes an array that is evaluated.
void say(const std::string& name, const array& a) {
  put(name.data(), name.size());
  put(a.data<char>(), a.nbytes());
}

// random numbers that are the same everywhere.
uint32_t state = 12345;
uint32_t next() {
  state = state * 1664525 + 1013904223;
  return state >> 8;
}
float uniform() {
  return (int(next() & 0xffff) - 0x8000) / 32768.f;
}

array numbers(Shape shape, Dtype type, float scale, float middle = 0) {
  size_t n = 1;
  for (auto d : shape) {
    n *= d;
  }
  std::vector<float> data(n);
  for (float& v : data) {
    v = middle + scale * uniform();
  }
  return array(data.begin(), std::move(shape), type);
}

array words(Shape shape) {
  std::vector<uint32_t> data(shape[0] * shape[1]);
  for (uint32_t& v : data) {
    v = next() << 16 ^ next();
  }
  return array(data.begin(), std::move(shape), uint32);
}

// operations evaluates single operations, one after another.
void operations() {
  array a = numbers({3, 64}, float32, 1), b = numbers({3, 64}, float32, 1), h = numbers({4, 128}, float16, 1), w = numbers({128}, float16, 0.5f, 1);
  auto one = [](const char* name, array x) {
    eval(x);
    say(name, x);
  };
  one("add", add(a, b));
  one("scaled", multiply(a, array(0.5f)));
  one("exp", exp(a));
  one("norm", fast::rms_norm(h, w, 1e-5f));
  one("softmax", softmax(h, -1));
  one("product", matmul(h, numbers({128, 32}, float16, 0.1f)));
  one("argmax", argmax(h, -1));
  one("sum", sum(a, 1));
  one("rows", take(h, array({2, 0, 3}, {3}, uint32), 0));
}

constexpr int width = 128, heads = 2, kv_heads = 2, dim = 64, hidden = 128, vocabulary = 256, context = 256, group = 64;

struct Matrix {
  array w, scales, biases;
};

Matrix matrix(int n, int k) {
  const float s = 2.f / std::sqrt(float(k)) / 15;
  Matrix m{words({n, k / 8}), numbers({n, k / group}, float16, s / 4, s), numbers({n, k / group}, float16, s / 4, -7.5f * s)};
  return m;
}

array product(const array& x, const Matrix& m) {
  return quantized_matmul(x, m.w, m.scales, m.biases, true, group, 4);
}

struct Layer {
  array norm, norm2;
  Matrix q, k, v, o, gate, up, down;
  array keys, values;
};

// decode generates tokens as MLX-LM does: the token that is most likely goes from step to step without the host, the cache of keys and
// values has room beforehand. It is written in place unless somebody holds the one before (copies): then MLX writes a copy of it, in
// another buffer of those that it has. Of many layers a step is several command buffers, whose completion handlers give buffers
// back: which ones MLX takes again in the same step depends on how fast the GPU is. Ahead, it gives the GPU a step before it waits for the one
// before, as MLX-LM does.
void decode(int steps, int layers, bool copies, bool ahead = false) {
  Matrix embedding = matrix(vocabulary, width), head = matrix(vocabulary, width);
  std::vector<Layer> all;
  for (int i = 0; i < layers; i++) {
    std::vector<float> zeros(kv_heads * context * dim);
    all.push_back({numbers({width}, float16, 0.1f, 1), numbers({width}, float16, 0.1f, 1), matrix(heads * dim, width), matrix(kv_heads * dim, width),
                   matrix(kv_heads * dim, width), matrix(width, heads * dim), matrix(hidden, width), matrix(hidden, width), matrix(width, hidden),
                   array(zeros.begin(), {1, kv_heads, context, dim}, float16), array(zeros.begin(), {1, kv_heads, context, dim}, float16)});
  }
  array last = numbers({width}, float16, 0.1f, 1);
  array token = array({1u}, {1, 1}, uint32);
  std::vector<array> before, late;
  for (int pos = 0; pos < steps; pos++) {
    array x = dequantize(take(embedding.w, token, 0), take(embedding.scales, token, 0), take(embedding.biases, token, 0), group, 4);
    auto split = [&](const array& a, int h) { return transpose(reshape(a, {1, 1, h, dim}), {0, 2, 1, 3}); };
    for (Layer& l : all) {
      if (copies) {
        before.push_back(l.keys);
        before.push_back(l.values);
      }
      array n = fast::rms_norm(x, l.norm, 1e-5f);
      array q = fast::rope(split(product(n, l.q), heads), dim, false, 10000.0f, 1.0f, pos);
      array k = fast::rope(split(product(n, l.k), kv_heads), dim, false, 10000.0f, 1.0f, pos);
      array v = split(product(n, l.v), kv_heads);
      l.keys = slice_update(l.keys, k, {0, 0, pos, 0}, {1, kv_heads, pos + 1, dim});
      l.values = slice_update(l.values, v, {0, 0, pos, 0}, {1, kv_heads, pos + 1, dim});
      array a = fast::scaled_dot_product_attention(q, slice(l.keys, {0, 0, 0, 0}, {1, kv_heads, pos + 1, dim}),
                                                   slice(l.values, {0, 0, 0, 0}, {1, kv_heads, pos + 1, dim}), 0.125f, "");
      x = add(x, product(reshape(transpose(a, {0, 2, 1, 3}), {1, 1, heads * dim}), l.o));
      n = fast::rms_norm(x, l.norm2, 1e-5f);
      array gate = product(n, l.gate);
      x = add(x, product(multiply(multiply(gate, sigmoid(gate)), product(n, l.up)), l.down));
    }
    array logits = reshape(product(fast::rms_norm(x, last, 1e-5f), head), {1, vocabulary});
    array next = argmax(logits, -1);
    token = reshape(next, {1, 1});
    if (ahead) {
      async_eval(token, logits);
      if (pos > 0) {
        late[0].wait();
        late[1].wait();
        say("logits", late[0]);
        say("token", late[1]);
      }
      late = {logits, token};
      continue;
    }
    eval(token, logits);
    synchronize(); // behind the completion handlers, which hold buffers: else it depends on time whether the cache is copied
    before.clear();
    say("logits", logits);
    say("token", token);
  }
}

} // namespace

// mlxhost_run runs a program, with MLX's kernels from a library, and returns what went wrong.
extern "C" __attribute__((visibility("default"))) const char* mlxhost_run(const char* program, const char* library, const char* path) {
  setenv("MLX_METAL_GPU_ARCH", "applegpu_g15s", 1);
  static std::string wrong;
  out = fopen(path, "wb");
  if (!out) {
    return "the file of outputs cannot be written";
  }
  try {
    metal::set_metallib_path(library);
    int steps = 0;
    if (!strcmp(program, "operations")) {
      operations();
    } else if (sscanf(program, "decode %d", &steps) == 1) {
      decode(steps, 2, false);
    } else if (sscanf(program, "decode-copies %d", &steps) == 1) {
      decode(steps, 2, true);
    } else if (sscanf(program, "decode-ahead %d", &steps) == 1) {
      decode(steps, 2, false, true);
    } else if (sscanf(program, "decode-deep %d", &steps) == 1) {
      decode(steps, 6, false);
    } else {
      wrong = "there is no such program";
    }
    synchronize();
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  fclose(out);
  return wrong.c_str();
}
