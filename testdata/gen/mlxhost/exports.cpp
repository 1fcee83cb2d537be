// Exports functions for a GPU, by MLX's own C++ (scripts/exports.sh). They are those of the same names under gpu/ in
// testdata/gen/mlxfn.py, whose arguments and results they are tested with; nothing is computed here, since tracing does not.
#include <cstdio>
#include <string>
#include <vector>

#include "mlx/mlx.h"

using namespace mlx::core;
using Arrays = std::vector<array>;

namespace {

std::string folder;

// argument is an array of a shape and type; what it holds does not matter.
array argument(Shape shape, Dtype type) {
  size_t n = 1;
  for (auto d : shape) {
    n *= d;
  }
  std::vector<float> data(n, 1.0f);
  return array(data.begin(), std::move(shape), type);
}

void save(const std::string& name, const Arrays& args, const std::function<Arrays(const Arrays&)>& f) {
  export_function(folder + "/" + name + ".mlxfn", f, args, false, "exported by testdata/gen/mlxhost/exports.cpp");
}

array swish(const array& x) {
  return x * sigmoid(x);
}

} // namespace

int main(int argc, char** argv) {
  folder = argv[1];
  set_default_device(Device::gpu);
  auto f32 = [](Shape shape) { return argument(std::move(shape), float32); };
  auto f16 = [](Shape shape) { return argument(std::move(shape), float16); };
  save("rms_norm", {f32({3, 96}), f32({96})}, [](const Arrays& a) {
    return Arrays{fast::rms_norm(a[0], a[1], 1e-5), fast::rms_norm(a[0], std::nullopt, 1e-5)};
  });
  save("rms_norm_f16", {f16({2, 3, 128}), f16({128})}, [](const Arrays& a) { return Arrays{fast::rms_norm(a[0], a[1], 1e-5)}; });
  save("layer_norm", {f32({3, 96}), f32({96}), f32({96})}, [](const Arrays& a) {
    return Arrays{fast::layer_norm(a[0], a[1], a[2], 1e-5), fast::layer_norm(a[0], std::nullopt, std::nullopt, 1e-5)};
  });
  save("rope", {f32({1, 4, 3, 32}), array(5)}, [](const Arrays& a) {
    return Arrays{fast::rope(a[0], 32, false, 10000.0f, 1.0f, a[1]), fast::rope(a[0], 16, true, 500.0f, 0.5f, 3)};
  });
  save("rope_batch", {f32({2, 4, 1, 16}), array({5, 2}), f32({8})}, [](const Arrays& a) {
    return Arrays{fast::rope(a[0], 16, false, std::nullopt, 1.0f, a[1], a[2])};
  });
  save("attention", {f32({1, 4, 1, 64}), f32({1, 2, 9, 64}), f32({1, 2, 9, 64}), argument({1, 1, 1, 9}, bool_)}, [](const Arrays& a) {
    return Arrays{fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.125f, "array", a[3])};
  });
  save("attention_causal", {f16({2, 4, 5, 64}), f16({2, 4, 9, 64}), f16({2, 4, 9, 64})}, [](const Arrays& a) {
    return Arrays{fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.1f, "causal")};
  });
  save("attention_sinks", {f32({1, 4, 1, 64}), f32({1, 2, 9, 64}), f32({1, 2, 9, 64}), f32({4})}, [](const Arrays& a) {
    return Arrays{fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.125f, "", {}, a[3])};
  });
  // Heads of this width have no fused kernel: MLX for GPUs composes their attention, too.
  save("attention_added", {f32({1, 2, 3, 48}), f32({1, 2, 7, 48}), f32({1, 2, 7, 48}), f32({3, 7})}, [](const Arrays& a) {
    return Arrays{fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.2f, "array", a[3])};
  });
  save("dequantize", {argument({6, 16}, uint32), f16({6, 2}), f16({6, 2})}, [](const Arrays& a) {
    return Arrays{dequantize(a[0], a[1], a[2], 64, 4) * array(2, float16)};
  });
  auto codes = [](int n, int k) { return argument({n, k / 8}, uint32); };
  save(
      "layer",
      {f16({1, 1, 128}), f16({128}), codes(384, 128), f16({384, 2}), f16({384, 2}), codes(128, 128), f16({128, 2}), f16({128, 2}),
       f16({1, 2, 16, 64}), f16({1, 2, 16, 64}), array({5})},
      [](const Arrays& a) {
        auto h = fast::rms_norm(a[0], a[1], 1e-5);
        auto parts = split(quantized_matmul(h, a[2], a[3], a[4], true, 64, 4), 3, -1);
        for (auto& p : parts) {
          p = transpose(reshape(p, {1, 1, 2, 64}), {0, 2, 1, 3});
        }
        auto q = fast::rope(parts[0], 64, false, 10000.0f, 1.0f, a[10]), k = fast::rope(parts[1], 64, false, 10000.0f, 1.0f, a[10]);
        auto keys = slice_update(a[8], k, a[10], {2}), values = slice_update(a[9], parts[2], a[10], {2});
        auto out = fast::scaled_dot_product_attention(q, keys, values, 0.125f, "array", greater_equal(a[10], arange(16)));
        out = reshape(transpose(out, {0, 2, 1, 3}), {1, 1, 128});
        auto act = compile([](const Arrays& x) { return Arrays{swish(x[0])}; });
        return Arrays{a[0] + act({quantized_matmul(out, a[5], a[6], a[7], true, 64, 4)})[0], keys, values};
      });
  return 0;
}
