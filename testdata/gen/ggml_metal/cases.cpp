// The cases: operations of ggml of all sorts, small, with the odd shapes and strides that their
// Metal kernels branch on.
#include "build.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace {

const ggml_type F32 = GGML_TYPE_F32, F16 = GGML_TYPE_F16, BF16 = GGML_TYPE_BF16, I32 = GGML_TYPE_I32;

// ggml's test-backend-ops compares back ends by the mean square of all differences, divided by that of the
// results: 1e-7 if an operation says nothing else. Here no element may be off by more than a part of
// the root of that.
const Tolerance exact  = { 0, "" };
const Tolerance single = { 5e-6, "float32 on both sides, sums in other orders; ggml's test-backend-ops allows sqrt(1e-7) = 3e-4 of the root mean square" };
const Tolerance loose  = { 3e-4, "approximations of functions differ; ggml's test-backend-ops allows sqrt(1e-7) = 3e-4 of the root mean square" };
const Tolerance rounded = { 4e-3, "ggml's CPU back end takes the function from a table of halves, or the result is one" };
const Tolerance tiles  = { 2e-3, "operands or sums of half; ggml's test-backend-ops allows sqrt(5e-4) = 2e-2 of the root mean square" };
const Tolerance brains = { 1e-2, "operands of bfloat; ggml's test-backend-ops allows sqrt(5e-4) = 2e-2 of the root mean square" };

const std::vector<ggml_type> blocks32  = { GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_MXFP4, GGML_TYPE_IQ4_NL };
const std::vector<ggml_type> blocks256 = { GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ2_XS, GGML_TYPE_IQ2_S, GGML_TYPE_IQ3_XXS, GGML_TYPE_IQ3_S, GGML_TYPE_IQ1_S, GGML_TYPE_IQ1_M, GGML_TYPE_IQ4_XS };

std::vector<Case> all;

// What follows counts as more of the same.
void extra(bool is = true) { all.back().extra = is; }
void defect(const char * why) { all.back().defect = why; }

void add(std::string name, Tolerance t, std::function<ggml_tensor *(Build &)> make) {
    all.push_back({ name, t, make });
}

std::string n(ggml_type t) { return ggml_type_name(t); }

void products() {
    struct Width { ggml_type type; int64_t k; };
    std::vector<Width> types = { { F32, 132 }, { F16, 132 }, { BF16, 132 }, { GGML_TYPE_Q1_0, 1280 } };
    for (auto t : blocks32) {
        types.push_back({ t, 352 });
    }
    for (auto t : blocks256) {
        types.push_back({ t, 1280 });
    }
    int i = 0;
    for (auto [type, k] : types) {
        i++;
        add("mul_mat " + n(type) + " vector", single, [=](Build & b) {
            return ggml_mul_mat(b.ctx, b.weights(type, { k, 7 }), b.drawn(F32, { k, 1 }));
        });
        int64_t km = k == 1280 ? 256 : k;
        add("mul_mat " + n(type) + " matrix", type == BF16 ? brains : tiles, [=](Build & b) {
            return ggml_mul_mat(b.ctx, b.weights(type, { km, 9 }), b.drawn(F32, { km, 35 }));
        });
        extra(i % 4 != 0);
        add("mul_mat_id " + n(type) + " few tokens", single, [=](Build & b) {
            return ggml_mul_mat_id(b.ctx, b.weights(type, { km, 5, 3 }), b.drawn(F32, { km, 2, 3 }), b.given(I32, { 2, 3 }, { 2, 0, 1, 2, 0, 1 }));
        });
        extra(i % 6 != 0);
        add("get_rows " + n(type), exact, [=](Build & b) {
            return ggml_get_rows(b.ctx, b.weights(type, { km, 5 }), b.given(I32, { 4 }, { 3, 0, 4, 3 }));
        });
        extra(i % 4 != 1);
    }
    for (auto type : { F32, F16, BF16 }) {
        add("mul_mat " + n(type) + " odd vector", single, [=](Build & b) { return ggml_mul_mat(b.ctx, b.weights(type, { 129, 5 }), b.drawn(F32, { 129, 2 })); });
        add("mul_mat " + n(type) + " short vector", single, [=](Build & b) { return ggml_mul_mat(b.ctx, b.weights(type, { 19, 5, 2 }), b.drawn(F32, { 19, 3, 4 })); });
    }
    add("mul_mat f16 by f16", tiles, [](Build & b) { return ggml_mul_mat(b.ctx, b.drawn(F16, { 132, 5 }), b.weights(F16, { 132, 2 })); });
    for (auto type : { F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K }) {
        for (int64_t m : { 4, 5 }) {
            add("mul_mat " + n(type) + " " + std::to_string(m) + " vectors", single, [=](Build & b) { return ggml_mul_mat(b.ctx, b.weights(type, { 256, 7 }), b.drawn(F32, { 256, m })); });
            extra(type != GGML_TYPE_Q4_0 && (type != GGML_TYPE_Q6_K || m != 4));
        }
    }
    add("mul_mat q4_0 whole tiles", tiles, [](Build & b) { return ggml_mul_mat(b.ctx, b.weights(GGML_TYPE_Q4_0, { 64, 64 }), b.drawn(F32, { 64, 32 })); });
    add("mul_mat f32 matrices of a batch, shared", tiles, [](Build & b) { return ggml_mul_mat(b.ctx, b.drawn(F32, { 72, 9, 2 }), b.drawn(F32, { 72, 11, 4, 2 })); });
    add("mul_mat f32 permuted", single, [](Build & b) {
        return ggml_mul_mat(b.ctx, ggml_permute(b.ctx, b.drawn(F32, { 64, 3, 5 }), 0, 2, 1, 3), ggml_permute(b.ctx, b.drawn(F32, { 64, 3, 2 }), 0, 2, 1, 3));
    });
    for (auto type : { F32, F16, GGML_TYPE_Q4_0, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K, GGML_TYPE_IQ2_XXS }) {
        add("mul_mat_id " + n(type) + " many tokens", tiles, [=](Build & b) {
            std::vector<double> ids;
            for (int t = 0; t < 35; t++) {
                ids.push_back(t * 7 % 5 % 4);
                ids.push_back((t * 7 % 5 + 1 + t % 3) % 4 == t * 7 % 5 % 4 ? (t * 7 % 5 + 1) % 4 : (t * 7 % 5 + 1 + t % 3) % 4);
            }
            return ggml_mul_mat_id(b.ctx, b.weights(type, { 256, 9, 4 }), b.drawn(F32, { 256, 2, 35 }), b.given(I32, { 2, 35 }, ids));
        });
        extra(type != GGML_TYPE_Q4_0);
    }
}

void copies() {
    auto cpy = [](ggml_type from, ggml_type to, int64_t k) {
        add("cpy " + n(from) + " to " + n(to), exact, [=](Build & b) {
            ggml_tensor * a = from == I32 ? b.integers(I32, { k, 3, 2 }, -1000, 1000) : ggml_is_quantized(from) ? b.weights(from, { k, 3, 2 }) : b.drawn(from, { k, 3, 2 }, -100, 100);
            return ggml_cpy(b.ctx, a, ggml_new_tensor_3d(b.ctx, to, k, 3, 2));
        });
    };
    for (auto to : { F32, F16, BF16, I32 }) {
        cpy(F32, to, 37);
    }
    cpy(F16, F32, 37), cpy(F16, F16, 37), cpy(BF16, F32, 37), cpy(BF16, BF16, 37), cpy(I32, F32, 37), cpy(I32, I32, 37);
    for (auto t : { GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0 }) {
        cpy(F32, t, 64);
        extra(t == GGML_TYPE_Q4_1 || t == GGML_TYPE_Q5_1);
        cpy(t, F32, 64);
        extra(t != GGML_TYPE_Q5_1);
        cpy(t, F16, 64);
        extra(t != GGML_TYPE_Q5_0);
    }
    cpy(F32, GGML_TYPE_IQ4_NL, 64);
    cpy(F32, GGML_TYPE_Q1_0, 256);
    cpy(GGML_TYPE_Q1_0, F32, 256);
    add("cont transposed", exact, [](Build & b) { return ggml_cont(b.ctx, ggml_permute(b.ctx, b.drawn(F32, { 5, 7, 3 }), 2, 0, 1, 3)); });
    for (auto type : { F32, F16, BF16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q8_0, GGML_TYPE_IQ4_NL }) {
        for (auto index : { I32, GGML_TYPE_I64 }) {
            if (index == I32 && type != F32 && type != GGML_TYPE_Q8_0) {
                continue;
            }
            add("set_rows " + n(type) + " by " + n(index), exact, [=](Build & b) {
                return ggml_set_rows(b.ctx, b.given(type, { 64, 6 }, {}), b.drawn(F32, { 64, 3 }), b.given(index, { 3 }, { 4, 0, 5 }));
            });
            extra(type != F32 && type != GGML_TYPE_Q5_0 && (type != GGML_TYPE_Q8_0 || index != I32));
        }
    }
    add("get_rows i32", exact, [](Build & b) { return ggml_get_rows(b.ctx, b.integers(I32, { 9, 5 }, -9, 9), b.given(I32, { 3 }, { 4, 4, 1 })); });
    add("get_rows f32 of a batch", exact, [](Build & b) { return ggml_get_rows(b.ctx, b.drawn(F32, { 33, 5, 2 }), b.integers(I32, { 3, 2 }, 0, 4)); });
    for (int dim = 0; dim < 4; dim++) {
        add("concat of dimension " + std::to_string(dim), exact, [=](Build & b) {
            std::vector<int64_t> x = { 5, 3, 2, 2 }, y = x;
            y[dim] += 2;
            return ggml_concat(b.ctx, b.drawn(F32, x), b.drawn(F32, y), dim);
        });
    }
    for (auto type : { F32, F16 }) {
        add("repeat " + n(type), exact, [=](Build & b) { return ggml_repeat_4d(b.ctx, b.drawn(type, { 5, 3, 2 }), 10, 3, 4, 2); });
    }
    add("repeat i32", exact, [](Build & b) { return ggml_repeat_4d(b.ctx, b.integers(I32, { 5, 3 }, -9, 9), 10, 6, 1, 1); });
    add("repeat i16", exact, [](Build & b) { return ggml_repeat_4d(b.ctx, b.integers(GGML_TYPE_I16, { 5, 3 }, -9, 9), 10, 6, 1, 1); });
    add("pad", exact, [](Build & b) { return ggml_pad(b.ctx, b.drawn(F32, { 5, 3, 2 }), 2, 1, 1, 1); });
    add("pad_reflect_1d", exact, [](Build & b) { return ggml_pad_reflect_1d(b.ctx, b.drawn(F32, { 17, 3, 2 }), 4, 7); });
    add("roll", exact, [](Build & b) { return ggml_roll(b.ctx, b.drawn(F32, { 9, 5, 3 }), 2, -1, 1, 0); });
    add("diag", exact, [](Build & b) { return ggml_diag(b.ctx, b.drawn(F32, { 9, 1, 3 })); });
    for (auto tri : { GGML_TRI_TYPE_UPPER_DIAG, GGML_TRI_TYPE_UPPER, GGML_TRI_TYPE_LOWER_DIAG, GGML_TRI_TYPE_LOWER }) {
        add("tri " + std::to_string(tri), exact, [=](Build & b) { return ggml_tri(b.ctx, b.drawn(F32, { 11, 11, 2 }), tri); });
    }
    add("set", exact, [](Build & b) {
        ggml_tensor * a = b.drawn(F32, { 12, 5 });
        return ggml_set(b.ctx, a, b.drawn(F32, { 4, 3 }), a->nb[1], a->nb[2], a->nb[3], 2 * 4 + a->nb[1]);
    });
    add("fill", exact, [](Build & b) { return ggml_fill(b.ctx, b.drawn(F32, { 13, 3 }), 2.5f); });
    add("arange", single, [](Build & b) { return ggml_arange(b.ctx, -3, 60, 0.75f); });
    add("im2col f32", exact, [](Build & b) { return ggml_im2col(b.ctx, b.drawn(F32, { 3, 2, 2, 4 }), b.drawn(F32, { 9, 7, 2, 2 }), 2, 1, 1, 1, 1, 2, true, F32); });
    add("im2col f16", exact, [](Build & b) { return ggml_im2col(b.ctx, b.drawn(F16, { 3, 2, 4 }), b.drawn(F32, { 9, 2, 2 }), 1, 0, 1, 0, 2, 0, false, F16); });
}

void elementwise() {
    for (int i = 0; i < GGML_UNARY_OP_COUNT; i++) {
        const ggml_unary_op op = (ggml_unary_op) i;
        if (op == GGML_UNARY_OP_XIELU) {
            continue;
        }
        const std::string name = ggml_unary_op_name(op);
        const bool whole = op == GGML_UNARY_OP_ABS || op == GGML_UNARY_OP_SGN || op == GGML_UNARY_OP_NEG || op == GGML_UNARY_OP_STEP || op == GGML_UNARY_OP_RELU || op == GGML_UNARY_OP_FLOOR || op == GGML_UNARY_OP_CEIL || op == GGML_UNARY_OP_ROUND || op == GGML_UNARY_OP_TRUNC;
        // ggml's CPU takes gelu and its quick form from tables of half.
        const Tolerance t = whole ? exact : op == GGML_UNARY_OP_GELU || op == GGML_UNARY_OP_GELU_QUICK ? rounded : single;
        add("unary " + name, t, [=](Build & b) { return ggml_unary(b.ctx, b.drawn(F32, { 37, 3 }, -4, 4), op); });
        extra(i % 3 != 0);
    }
    for (auto op : { GGML_UNARY_OP_SILU, GGML_UNARY_OP_NEG }) {
        add(std::string("unary ") + ggml_unary_op_name(op) + " of four", op == GGML_UNARY_OP_NEG ? exact : single, [=](Build & b) { return ggml_unary(b.ctx, b.drawn(F32, { 64, 3 }, -4, 4), op); });
        add(std::string("unary ") + ggml_unary_op_name(op) + " f16", op == GGML_UNARY_OP_NEG ? exact : rounded, [=](Build & b) { return ggml_unary(b.ctx, b.drawn(F16, { 37, 3 }, -4, 4), op); });
        add(std::string("unary ") + ggml_unary_op_name(op) + " f16 of four", op == GGML_UNARY_OP_NEG ? exact : rounded, [=](Build & b) { return ggml_unary(b.ctx, b.drawn(F16, { 64, 3 }, -4, 4), op); });
    }
    add("unary xielu", single, [](Build & b) { return ggml_xielu(b.ctx, b.drawn(F32, { 37, 3 }, -4, 4), 0.8f, 0.9f, 0.5f, 1e-6f); });
    add("unary silu of a view", single, [](Build & b) {
        ggml_tensor * a = b.drawn(F32, { 48, 6 }, -4, 4);
        return ggml_silu(b.ctx, ggml_view_2d(b.ctx, a, 37, 3, 2 * a->nb[1], 8));
    });
    add("sqr", single, [](Build & b) { return ggml_sqr(b.ctx, b.drawn(F32, { 37, 3 })); });
    add("sqrt", single, [](Build & b) { return ggml_sqrt(b.ctx, b.drawn(F32, { 37, 3 }, 0, 9)); });
    add("sin", single, [](Build & b) { return ggml_sin(b.ctx, b.drawn(F32, { 37, 3 }, -6, 6)); });
    add("cos", single, [](Build & b) { return ggml_cos(b.ctx, b.drawn(F32, { 37, 3 }, -6, 6)); });
    add("log", single, [](Build & b) { return ggml_log(b.ctx, b.drawn(F32, { 37, 3 }, 0.01, 9)); });
    add("leaky_relu", single, [](Build & b) { return ggml_leaky_relu(b.ctx, b.drawn(F32, { 37, 3 }), 0.1f, false); });
    add("clamp", exact, [](Build & b) { return ggml_clamp(b.ctx, b.drawn(F32, { 37, 3 }), -0.5f, 0.25f); });
    add("scale", single, [](Build & b) { return ggml_scale_bias(b.ctx, b.drawn(F32, { 37, 3 }), 1.7f, 0.3f); });
    struct Binary { const char * name; ggml_tensor * (*op)(ggml_context *, ggml_tensor *, ggml_tensor *); };
    for (auto [name, op] : { Binary { "add", ggml_add }, Binary { "sub", ggml_sub }, Binary { "mul", ggml_mul }, Binary { "div", ggml_div } }) {
        add(name, single, [op = op](Build & b) { return op(b.ctx, b.drawn(F32, { 37, 3, 2, 2 }, 1, 3), b.drawn(F32, { 37, 1, 2 }, 1, 3)); });
        add(std::string(name) + " of four", single, [op = op](Build & b) { return op(b.ctx, b.drawn(F32, { 64, 3 }, 1, 3), b.drawn(F32, { 64 }, 1, 3)); });
    }
    add("add of a repeated row", single, [](Build & b) { return ggml_add(b.ctx, b.drawn(F32, { 36, 5 }), b.drawn(F32, { 12, 1 })); });
    add("add of four terms", single, [](Build & b) {
        ggml_tensor * sum = b.drawn(F32, { 20, 3 });
        ggml_tensor * x[3] = { b.drawn(F32, { 20, 3 }), b.drawn(F32, { 20, 3 }), b.drawn(F32, { 20, 3 }) };
        for (auto y : x) {
            sum = ggml_add(b.ctx, sum, y);
        }
        return sum;
    });
    add("acc", single, [](Build & b) {
        ggml_tensor * a = b.drawn(F32, { 12, 5 });
        return ggml_acc(b.ctx, a, b.drawn(F32, { 12, 3 }), a->nb[1], a->nb[2], a->nb[3], a->nb[1]);
    });
    add("add_id", single, [](Build & b) { return ggml_add_id(b.ctx, b.drawn(F32, { 33, 2, 3 }), b.drawn(F32, { 33, 4 }), b.integers(I32, { 2, 3 }, 0, 3)); });
    for (auto op : { GGML_GLU_OP_REGLU, GGML_GLU_OP_GEGLU, GGML_GLU_OP_SWIGLU, GGML_GLU_OP_GEGLU_ERF, GGML_GLU_OP_GEGLU_QUICK }) {
        const Tolerance t = op == GGML_GLU_OP_GEGLU || op == GGML_GLU_OP_GEGLU_QUICK ? rounded : single;
        add(std::string("glu ") + ggml_glu_op_name(op), t, [=](Build & b) { return ggml_glu(b.ctx, b.drawn(F32, { 74, 3 }, -3, 3), op, false); });
        add(std::string("glu ") + ggml_glu_op_name(op) + " of two", t, [=](Build & b) { return ggml_glu_split(b.ctx, b.drawn(F32, { 37, 3 }, -3, 3), b.drawn(F32, { 37, 3 }, -3, 3), op); });
        extra();
    }
    add("glu swapped", single, [](Build & b) { return ggml_swiglu_swapped(b.ctx, b.drawn(F32, { 74, 3 }, -3, 3)); });
    add("glu swiglu_oai", single, [](Build & b) { return ggml_swiglu_oai(b.ctx, b.drawn(F32, { 37, 3 }, -9, 9), b.drawn(F32, { 37, 3 }, -9, 9), 1.702f, 7.0f); });
    add("opt_step_sgd", single, [](Build & b) {
        ggml_tensor * a = b.drawn(F32, { 37, 3 });
        ggml_set_param(a);
        return ggml_opt_step_sgd(b.ctx, a, b.drawn(F32, { 37, 3 }), b.given(F32, { 2 }, { 0.1, 0.01 }));
    });
    add("opt_step_adamw", single, [](Build & b) {
        ggml_tensor * a = b.drawn(F32, { 37, 3 });
        ggml_set_param(a);
        ggml_tensor * g = b.drawn(F32, { 37, 3 }), * m = b.drawn(F32, { 37, 3 }), * v = b.drawn(F32, { 37, 3 }, 0.1, 1);
        return ggml_opt_step_adamw(b.ctx, a, g, m, v, b.given(F32, { 7 }, { 0.01, 0.9, 0.999, 1e-8, 0.01, 1.5, 1.2 }));
    });
    add("timestep_embedding", loose, [](Build & b) { return ggml_timestep_embedding(b.ctx, b.given(F32, { 3 }, { 0, 7, 913 }), 34, 10000); });
}

void reductions() {
    const char * partial = "the last simdgroup has fewer threads than there are simdgroups, and adds up too few parts";
    for (int64_t k : { 37, 128, 132 }) {
        const std::string of = " of " + std::to_string(k);
        add("sum_rows" + of, single, [=](Build & b) { return ggml_sum_rows(b.ctx, b.drawn(F32, { k, 3, 2 })); });
        add("mean" + of, single, [=](Build & b) { return ggml_mean(b.ctx, b.drawn(F32, { k, 3, 2 })); });
        add("norm" + of, single, [=](Build & b) { return ggml_norm(b.ctx, b.drawn(F32, { k, 3 }), 1e-5f); });
        defect(k == 132 ? partial : "");
        add("rms_norm" + of, single, [=](Build & b) { return ggml_rms_norm(b.ctx, b.drawn(F32, { k, 3 }), 1e-5f); });
        defect(k == 132 ? partial : "");
        add("l2_norm" + of, single, [=](Build & b) { return ggml_l2_norm(b.ctx, b.drawn(F32, { k, 3 }), 1e-5f); });
        for (bool rms : { false, true }) {
            if (k == 132) {
                continue;
            }
            auto norm = rms ? ggml_rms_norm : ggml_norm;
            const std::string name = rms ? "rms_norm" : "norm";
            add(name + " and mul" + of, single, [=](Build & b) {
                ggml_tensor * x = b.drawn(F32, { k, 3 }), * w = b.drawn(F32, { k });
                return ggml_mul(b.ctx, norm(b.ctx, x, 1e-5f), w);
            });
            extra(rms == (k == 37));
            add(name + ", mul and add" + of, single, [=](Build & b) {
                ggml_tensor * x = b.drawn(F32, { k, 3 }), * w = b.drawn(F32, { k }), * y = b.drawn(F32, { k, 3 });
                return ggml_add(b.ctx, ggml_mul(b.ctx, norm(b.ctx, x, 1e-5f), w), y);
            });
            extra(rms != (k == 37));
        }
        add("soft_max" + of, single, [=](Build & b) { return ggml_soft_max(b.ctx, b.drawn(F32, { k, 3, 2 }, -5, 5)); });
        for (auto type : { F32, F16 }) {
            add("soft_max with a mask " + n(type) + " and slopes" + of, single, [=](Build & b) {
                return ggml_soft_max_ext(b.ctx, b.drawn(F32, { k, 3, 4 }, -5, 5), b.drawn(type, { k, 3 }, -2, 0), 0.7f, 8.0f);
            });
        }
    }
    add("rms_norm of 4100", single, [](Build & b) { return ggml_rms_norm(b.ctx, b.drawn(F32, { 4100, 1 }), 1e-5f); });
    add("group_norm", single, [](Build & b) { return ggml_group_norm(b.ctx, b.drawn(F32, { 7, 5, 6 }), 3, 1e-5f); });
    add("group_norm of a batch", single, [](Build & b) { return ggml_group_norm(b.ctx, b.drawn(F32, { 7, 5, 6, 2 }), 3, 1e-5f); });
    defect("only the first of the batch is computed");
    add("sum", single, [](Build & b) { return ggml_sum(b.ctx, b.drawn(F32, { 333, 3 }, 0, 1)); });
    for (int64_t k : { 37, 2500 }) {
        add("cumsum of " + std::to_string(k), single, [=](Build & b) { return ggml_cumsum(b.ctx, b.drawn(F32, { k, k < 1024 ? 3 : 1 }, 0, 1)); });
        for (auto order : { GGML_SORT_ORDER_ASC, GGML_SORT_ORDER_DESC }) {
            add(std::string("argsort ") + (order == GGML_SORT_ORDER_ASC ? "ascending" : "descending") + " of " + std::to_string(k), exact, [=](Build & b) {
                // All different: what is equal has no order.
                const int64_t rows = k < 1024 ? 3 : 1;
                std::vector<double> v(rows * k);
                for (int64_t i = 0; i < rows * k; i++) {
                    v[i] = double(i * 769 % (rows * k)) - k;
                }
                return ggml_argsort(b.ctx, b.given(F32, { k, rows }, v), order);
            });
        }
    }
    add("argmax", exact, [](Build & b) { return ggml_argmax(b.ctx, b.drawn(F32, { 133, 5 })); });
    add("count_equal", exact, [](Build & b) { return ggml_count_equal(b.ctx, b.integers(I32, { 133, 5 }, 0, 3), b.integers(I32, { 133, 5 }, 0, 3)); });
    for (auto pool : { GGML_OP_POOL_AVG, GGML_OP_POOL_MAX }) {
        const std::string name = pool == GGML_OP_POOL_AVG ? " of averages" : " of maxima";
        add("pool_1d" + name, single, [=](Build & b) { return ggml_pool_1d(b.ctx, b.drawn(F32, { 19, 3 }), pool, 3, 2, 0); });
        add("pool_2d" + name, single, [=](Build & b) { return ggml_pool_2d(b.ctx, b.drawn(F32, { 11, 9, 2 }), pool, 3, 2, 2, 1, 1, 0); });
    }
}

void sequences() {
    const std::vector<double> positions = { 0, 1, 7, 300 };
    for (auto type : { F32, F16 }) {
        const Tolerance t = type == F16 ? rounded : loose;
        for (int mode : { GGML_ROPE_TYPE_NORMAL, GGML_ROPE_TYPE_NEOX }) {
            const std::string name = std::string("rope ") + (mode ? "neox " : "normal ") + n(type);
            add(name, t, [=](Build & b) { return ggml_rope_ext(b.ctx, b.drawn(type, { 40, 3, 4 }), b.given(I32, { 4 }, positions), nullptr, 32, mode, 0, 10000, 1, 0, 1, 32, 1); });
            extra(type == F16 && mode == GGML_ROPE_TYPE_NORMAL);
            if (type == F32) {
                add(name + ", scaled by factors", t, [=](Build & b) { return ggml_rope_ext(b.ctx, b.drawn(type, { 40, 3, 4 }), b.given(I32, { 4 }, positions), b.drawn(F32, { 16 }, 1, 3), 32, mode, 4096, 10000, 0.5, 0.7, 1.1, 32, 1); });
            }
        }
        for (int mode : { GGML_ROPE_TYPE_MROPE, GGML_ROPE_TYPE_IMROPE, GGML_ROPE_TYPE_VISION }) {
            const std::string name = std::string("rope ") + (mode == GGML_ROPE_TYPE_MROPE ? "multi " : mode == GGML_ROPE_TYPE_IMROPE ? "interleaved multi " : "vision ") + n(type);
            add(name, t, [=](Build & b) {
                int sections[4] = { 4, 6, 6, 0 };
                if (mode == GGML_ROPE_TYPE_VISION) {
                    sections[0] = sections[1] = 10, sections[2] = 0;
                }
                return ggml_rope_multi(b.ctx, b.drawn(type, { 40, 3, 4 }), b.integers(I32, { 16 }, 0, 99), nullptr, mode == GGML_ROPE_TYPE_VISION ? 20 : 32, sections, mode, 0, 10000, 1, 0, 1, 32, 1);
            });
            extra(type == F16);
        }
    }
    struct Heads { ggml_type type; int64_t d; };
    for (auto [type, d] : { Heads { F32, 32 }, Heads { F16, 64 }, Heads { BF16, 64 }, Heads { GGML_TYPE_Q4_0, 64 }, Heads { GGML_TYPE_Q4_1, 32 }, Heads { GGML_TYPE_Q5_0, 32 }, Heads { GGML_TYPE_Q5_1, 32 }, Heads { GGML_TYPE_Q8_0, 32 }, Heads { F16, 40 } }) {
        // Few queries take the kernel of vectors; 77 keys are filled up to blocks.
        for (int64_t queries : { 3, 21 }) {
            for (int64_t keys : { 128, 77 }) {
                if ((d == 40 && queries == 3) || (keys == 77 && type != F16 && type != GGML_TYPE_Q8_0)) {
                    continue;
                }
                add("flash_attn_ext " + n(type) + " heads of " + std::to_string(d) + ", " + std::to_string(queries) + " queries, " + std::to_string(keys) + " keys", type == BF16 ? brains : tiles, [=, type = type, d = d](Build & b) {
                    ggml_tensor * q = b.drawn(F32, { d, queries, 4 }), * k = b.weights(type, { d, keys, 2 }), * v = b.weights(type, { d, keys, 2 });
                    std::vector<double> mask;
                    for (int64_t i = 0; i < queries; i++) {
                        for (int64_t j = 0; j < keys; j++) {
                            mask.push_back(j <= i + keys - queries ? 0 : -INFINITY);
                        }
                    }
                    return ggml_flash_attn_ext(b.ctx, q, k, v, b.given(F16, { keys, queries }, mask), 1 / std::sqrt(float(d)), 0, 0);
                });
                extra(!(type == F16 && d == 64 && keys == 77) && !(d == 40 && keys == 128) && !(type == GGML_TYPE_Q8_0 && keys == 77));
            }
        }
    }
    add("flash_attn_ext with slopes and a cap", tiles, [](Build & b) {
        ggml_tensor * q = b.drawn(F32, { 64, 3, 4 }, -4, 4), * k = b.weights(F16, { 64, 96, 2 }), * v = b.weights(F16, { 64, 96, 2 });
        return ggml_flash_attn_ext(b.ctx, q, k, v, b.drawn(F16, { 96, 3 }, -2, 0), 0.125f, 8.0f, 10.0f);
    });
    add("ssm_conv", single, [](Build & b) { return ggml_ssm_conv(b.ctx, b.drawn(F32, { 8, 9, 2 }), b.drawn(F32, { 3, 9 })); });
    add("ssm_conv of four", single, [](Build & b) { return ggml_ssm_conv(b.ctx, b.drawn(F32, { 7, 9, 2 }), b.drawn(F32, { 4, 9 })); });
    add("ssm_conv of many", single, [](Build & b) { return ggml_ssm_conv(b.ctx, b.drawn(F32, { 72, 9 }), b.drawn(F32, { 3, 9 })); });
    add("ssm_conv of four, many", single, [](Build & b) { return ggml_ssm_conv(b.ctx, b.drawn(F32, { 73, 9 }), b.drawn(F32, { 4, 9 })); });
    for (int64_t head : { 1, 8 }) {
        add("ssm_scan of heads of " + std::to_string(head), loose, [=](Build & b) {
            const int64_t state = head == 1 ? 16 : 64, heads = 4, tokens = 5;
            return ggml_ssm_scan(b.ctx, b.drawn(F32, { state, head, heads, 2 }), b.drawn(F32, { head, heads, tokens, 2 }), b.drawn(F32, { heads, tokens, 2 }, 0, 1),
                b.drawn(F32, { head == 1 ? state : 1, heads }, -1, 0), b.drawn(F32, { state, 2, tokens, 2 }), b.drawn(F32, { state, 2, tokens, 2 }), b.given(I32, { 2 }, { 1, 0 }));
        });
    }
    add("rwkv_wkv6", single, [](Build & b) {
        ggml_tensor * k = b.drawn(F32, { 64, 1, 6 }), * v = b.drawn(F32, { 64, 1, 6 }), * r = b.drawn(F32, { 64, 1, 6 });
        return ggml_rwkv_wkv6(b.ctx, k, v, r, b.drawn(F32, { 64, 1 }), b.drawn(F32, { 64, 1, 6 }, 0, 1), b.drawn(F32, { 64 * 64, 2 }));
    });
    add("rwkv_wkv7", single, [](Build & b) {
        ggml_tensor * r = b.drawn(F32, { 64, 2, 3 }), * w = b.drawn(F32, { 64, 2, 3 }, 0, 1), * k = b.drawn(F32, { 64, 2, 3 }), * v = b.drawn(F32, { 64, 2, 3 });
        return ggml_rwkv_wkv7(b.ctx, r, w, k, v, b.drawn(F32, { 64, 2, 3 }, -0.125, 0.125), b.drawn(F32, { 64, 2, 3 }, -0.125, 0.125), b.drawn(F32, { 64 * 64 * 2, 1 }));
    });
    for (bool vector : { false, true }) {
        const int64_t d = vector ? 32 : 64;
        add("gated_delta_net of heads of " + std::to_string(d) + (vector ? ", gates of vectors" : ""), single, [=](Build & b) {
            ggml_tensor * q = b.drawn(F32, { d, 1, 4, 1 }, -0.125, 0.125), * k = b.drawn(F32, { d, 1, 4, 1 }, -0.125, 0.125), * v = b.drawn(F32, { d, 2, 4, 1 });
            return ggml_gated_delta_net(b.ctx, q, k, v, b.drawn(F32, { vector ? d : 1, 2, 4, 1 }, -3, 0), b.drawn(F32, { 1, 2, 4, 1 }, 0, 1), b.drawn(F32, { d * d * 2, 1, 1 }));
        });
    }
    add("solve_tri", loose, [](Build & b) {
        std::vector<double> a;
        for (int i = 0; i < 2 * 11 * 11; i++) {
            const int row = i / 11 % 11, col = i % 11;
            a.push_back(col > row ? 0 : col == row ? 1 + row % 3 * 0.25 : (i * 37 % 64 - 32) / 128.0);
        }
        return ggml_solve_tri(b.ctx, b.given(F32, { 11, 11, 2 }, a), b.drawn(F32, { 5, 11, 2 }), true, true, false);
    });
}

void pictures() {
    for (auto type : { F32, F16 }) {
        add("conv_2d " + n(type), type == F16 ? tiles : single, [=](Build & b) { return ggml_conv_2d_direct(b.ctx, b.weights(type, { 3, 2, 2, 4 }), b.drawn(F32, { 9, 7, 2, 2 }), 2, 1, 1, 1, 1, 2); });
        extra(type == F16);
        add("conv_3d " + n(type), type == F16 ? tiles : single, [=](Build & b) { return ggml_conv_3d_direct(b.ctx, b.weights(type, { 3, 2, 2, 2 * 3 }), b.drawn(F32, { 7, 6, 5, 2 }), 1, 2, 1, 1, 0, 1, 1, 1, 2, 2, 1, 3); });
        extra(type == F16);
        add("conv_transpose_1d " + n(type), type == F16 ? tiles : single, [=](Build & b) { return ggml_conv_transpose_1d(b.ctx, b.drawn(type, { 3, 4, 2 }), b.drawn(F32, { 7, 2 }), 2, 0, 1); });
        extra(type == F16);
        add("conv_transpose_2d " + n(type), tiles, [=](Build & b) { return ggml_conv_transpose_2d_p0(b.ctx, b.drawn(type, { 3, 2, 4, 2 }), b.drawn(F32, { 5, 4, 2 }), 2); });
    }
    add("upscale to the nearest", exact, [](Build & b) { return ggml_interpolate(b.ctx, b.drawn(F32, { 5, 4, 2 }), 12, 9, 2, 1, GGML_SCALE_MODE_NEAREST); });
    for (uint32_t corners : { 0u, (uint32_t) GGML_SCALE_FLAG_ALIGN_CORNERS }) {
        add(std::string("upscale, bilinear") + (corners ? ", corners aligned" : ""), single, [=](Build & b) { return ggml_interpolate(b.ctx, b.drawn(F32, { 5, 4, 2 }), 12, 9, 2, 1, GGML_SCALE_MODE_BILINEAR | corners); });
    }
    add("upscale, bilinear, antialiased", single, [](Build & b) { return ggml_interpolate(b.ctx, b.drawn(F32, { 15, 14, 2 }), 6, 5, 2, 1, GGML_SCALE_MODE_BILINEAR | GGML_SCALE_FLAG_ANTIALIAS); });
    add("upscale, bicubic", single, [](Build & b) { return ggml_interpolate(b.ctx, b.drawn(F32, { 5, 4, 2 }), 12, 9, 2, 1, GGML_SCALE_MODE_BICUBIC); });
}

} // namespace

std::vector<Case> cases() {
    products();
    copies();
    elementwise();
    reductions();
    sequences();
    pictures();
    return all;
}
