// Computes the cases with ggml's CPU back end, records what its Metal back end dispatches for them, and
// writes both in the form of internal/testing/kernelcases.
#include "build.h"
#include "recorder.h"

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

static uint64_t hash(uint64_t seed, uint64_t i) {
    uint64_t x = seed * 0xd1342543de82ef95 + (i + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static double drawn(const Rule & r, uint64_t i) {
    return double(r.low + int64_t(hash(r.seed, i) % uint64_t(r.high - r.low + 1))) * r.scale;
}

static void store(ggml_type type, void * to, int64_t i, double v) {
    switch (type) {
        case GGML_TYPE_F32:  ((float *) to)[i] = v; break;
        case GGML_TYPE_F16:  ((ggml_fp16_t *) to)[i] = ggml_fp32_to_fp16(v); break;
        case GGML_TYPE_BF16: ((ggml_bf16_t *) to)[i] = ggml_fp32_to_bf16(v); break;
        case GGML_TYPE_I16:  ((int16_t *) to)[i] = v; break;
        case GGML_TYPE_I32:  ((int32_t *) to)[i] = v; break;
        case GGML_TYPE_I64:  ((int64_t *) to)[i] = v; break;
        default: throw std::runtime_error("a type that nothing is drawn of");
    }
}

ggml_tensor * Build::named(ggml_type type, std::vector<int64_t> ne) {
    ggml_tensor * t = ggml_new_tensor(ctx, type, ne.size(), ne.data());
    ggml_set_name(t, std::string(1, 'a' + leaves.size()).c_str());
    return t;
}

// The numbers are multiples of a power of two that every type which is drawn holds exactly.
ggml_tensor * Build::drawn(ggml_type type, std::vector<int64_t> ne, double low, double high, bool weight) {
    const double largest = std::max(std::abs(low), std::abs(high));
    const int    bits    = type == GGML_TYPE_F32 ? 20 : type == GGML_TYPE_F16 ? 10 : 7;
    const double scale   = std::ldexp(1, int(std::ceil(std::log2(largest))) - bits);
    ggml_tensor * t = named(exact && weight ? GGML_TYPE_F32 : type, ne);
    leaves.push_back({ t, true, { leaves.size() + 1, (int64_t) std::ceil(low / scale), (int64_t) std::floor(high / scale), scale }, {} });
    return t;
}

ggml_tensor * Build::integers(ggml_type type, std::vector<int64_t> ne, int64_t low, int64_t high) {
    ggml_tensor * t = named(type, ne);
    leaves.push_back({ t, true, { leaves.size() + 1, low, high, 1 }, {} });
    return t;
}

ggml_tensor * Build::given(ggml_type type, std::vector<int64_t> ne, std::vector<double> values) {
    ggml_tensor * t = named(type, ne);
    std::vector<uint8_t> bytes(ggml_nbytes(t), 17);
    for (size_t i = 0; i < values.size(); i++) {
        store(type, bytes.data(), i, values[i]);
    }
    if (values.empty() && !ggml_is_quantized(type)) {
        for (int64_t i = 0; i < ggml_nelements(t); i++) {
            store(type, bytes.data(), i, 0.5);
        }
    }
    leaves.push_back({ t, false, {}, bytes });
    return t;
}

ggml_tensor * Build::weights(ggml_type type, std::vector<int64_t> ne) {
    if (!ggml_is_quantized(type)) {
        return drawn(type, ne, -1, 1, true);
    }
    const Rule rule = { 1000 + leaves.size(), -(1 << 10), 1 << 10, 0x1p-10 };
    int64_t rows = 1, n = ne[0];
    for (size_t i = 1; i < ne.size(); i++) {
        rows *= ne[i];
    }
    std::vector<float>   values(n * rows), ones(n, 1);
    std::vector<uint8_t> bytes(ggml_row_size(type, n) * rows);
    for (size_t i = 0; i < values.size(); i++) {
        values[i] = ::drawn(rule, i);
    }
    ggml_quantize_chunk(type, values.data(), bytes.data(), 0, rows, n, ones.data());
    ggml_tensor * t = named(exact ? GGML_TYPE_F32 : type, ne);
    if (exact) {
        ggml_get_type_traits(type)->to_float(bytes.data(), values.data(), n * rows);
        bytes.assign((uint8_t *) values.data(), (uint8_t *) (values.data() + values.size()));
    }
    leaves.push_back({ t, false, {}, bytes });
    return t;
}

// Run is a graph with memory.
struct Run {
    Build                      build;
    ggml_cgraph *              graph;
    ggml_tensor *              result;
    std::vector<ggml_tensor *> roots;
    std::vector<size_t>        sizes;
    std::vector<uint8_t>       memory;

    Run(const Case & c, bool exact) {
        build.ctx   = ggml_init({ 16 << 20, nullptr, true });
        build.exact = exact;
        result      = c.make(build);
        graph       = ggml_new_graph(build.ctx);
        ggml_build_forward_expand(graph, result);
        size_t total = 0;
        for (ggml_tensor * t = ggml_get_first_tensor(build.ctx); t; t = ggml_get_next_tensor(build.ctx, t)) {
            if (!t->view_src) {
                roots.push_back(t);
                sizes.push_back(allocated(t));
                total += (sizes.back() + 255) / 256 * 256;
            }
        }
        memory.resize(total + 256);
        uint8_t * at = (uint8_t *) (((uintptr_t) memory.data() + 255) / 256 * 256);
        ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(at, total);
        for (size_t i = 0; i < roots.size(); i++) {
            roots[i]->data   = at;
            roots[i]->buffer = buffer;
            at += (sizes[i] + 255) / 256 * 256;
        }
        for (ggml_tensor * t = ggml_get_first_tensor(build.ctx); t; t = ggml_get_next_tensor(build.ctx, t)) {
            if (t->view_src) {
                t->data   = (char *) t->view_src->data + t->view_offs;
                t->buffer = buffer;
            }
        }
        for (auto & l : build.leaves) {
            if (!l.drawn) {
                memcpy(l.tensor->data, l.given.data(), l.given.size());
            }
            for (int64_t i = 0; l.drawn && i < ggml_nelements(l.tensor); i++) {
                store(l.tensor->type, l.tensor->data, i, ::drawn(l.rule, i));
            }
        }
    }

    ~Run() { ggml_free(build.ctx); }

    void compute() {
        ggml_cplan plan = ggml_graph_plan(graph, 1, nullptr);
        std::vector<uint8_t> work(plan.work_size + 64);
        plan.work_data = work.data();
        if (ggml_graph_compute(graph, &plan) != GGML_STATUS_SUCCESS) {
            throw std::runtime_error("ggml does not compute it");
        }
    }

    // root is the place in roots of the tensor that an address is in.
    size_t root(const void * p) const {
        for (size_t i = 0; i < roots.size(); i++) {
            if (p >= roots[i]->data && p < (char *) roots[i]->data + sizes[i]) {
                return i;
            }
        }
        throw std::runtime_error("an argument is no memory of a tensor");
    }

    const Leaf * leaf(const ggml_tensor * t) const {
        for (auto & l : build.leaves) {
            if (l.tensor == t) {
                return &l;
            }
        }
        return nullptr;
    }
};

static std::string                   data; // the file of stored values
static std::map<std::string, size_t> stored;

static std::string keep(const void * p, size_t n) {
    std::string bytes((const char *) p, n);
    auto [at, fresh] = stored.emplace(bytes, data.size());
    if (fresh) {
        data += bytes;
    }
    char text[80];
    snprintf(text, sizeof text, "\"At\": %zu, \"Size\": %zu", at->second, n);
    return text;
}

static std::string number(double v) {
    char text[40];
    snprintf(text, sizeof text, "%.17g", v);
    return text;
}

struct Element { const char * name; size_t size; bool real; };

static Element element(ggml_type t) {
    switch (t) {
        case GGML_TYPE_F32:  return { "f32", 4, true };
        case GGML_TYPE_F16:  return { "f16", 2, true };
        case GGML_TYPE_BF16: return { "bf16", 2, true };
        case GGML_TYPE_I16:  return { "i16", 2, false };
        case GGML_TYPE_I32:  return { "i32", 4, false };
        case GGML_TYPE_I64:  return { "i64", 8, false };
        default:             return { "u8", 1, false };
    }
}

// want is what a tensor must hold: t, computed by another, which may be more exact.
static std::string want(const ggml_tensor * t, const ggml_tensor * computed, const Tolerance & tolerance) {
    if (!element(t->type).real) {
        return "\"Want\": {" + keep(computed->data, ggml_nbytes(computed)) + "}";
    }
    std::vector<float> values(ggml_nelements(computed));
    double squares = 0;
    for (size_t i = 0; i < values.size(); i++) {
        const ggml_type type = computed->type;
        const void * p = computed->data;
        values[i] = type == GGML_TYPE_F32 ? ((float *) p)[i] : type == GGML_TYPE_F16 ? ggml_fp16_to_fp32(((ggml_fp16_t *) p)[i]) : ggml_bf16_to_fp32(((ggml_bf16_t *) p)[i]);
        if (!std::isfinite(values[i])) {
            throw std::runtime_error("a result is no number");
        }
        squares += double(values[i]) * values[i];
    }
    std::string out = "\"Want\": {" + keep(values.data(), 4 * values.size());
    if (tolerance.error > 0) {
        out += ", \"Abs\": " + number(tolerance.error * std::sqrt(squares / values.size())) + ", \"Why\": \"" + tolerance.why + "\"";
    }
    return out + "}";
}

static std::string text(const Case & c) {
    Run metal(c, false), cpu(c, true);
    const std::vector<Dispatch> dispatches = record(metal.graph);
    std::vector<std::vector<uint8_t>> before;
    for (auto r : cpu.roots) {
        before.emplace_back((uint8_t *) r->data, (uint8_t *) r->data + ggml_nbytes(r));
    }
    cpu.compute();
    const ggml_tensor * last = metal.result->view_src ? metal.result->view_src : metal.result;
    std::string out = " {\"Name\": \"" + c.name + "\", \"Family\": \"" + ggml_op_name(metal.result->op) + "\", \"Oracle\": \"ggml's CPU back end\"" +
        (c.extra ? ", \"Extra\": true" : "") + (*c.defect ? std::string(", \"Defect\": \"") + c.defect + "\"" : "") + ",\n  \"Args\": [";
    bool changed = false;
    std::vector<std::string> names;
    for (size_t i = 0; i < metal.roots.size(); i++) {
        const ggml_tensor * t = metal.roots[i];
        const Leaf *        l = metal.leaf(t);
        const Element       e = element(t->type);
        if (metal.sizes[i] % e.size) {
            throw std::runtime_error("memory is no whole number of elements");
        }
        names.push_back(l ? t->name : t == last ? "out" : "t" + std::to_string(i));
        out += (i ? ",\n   " : "\n   ") + std::string("{\"Name\": \"") + names[i] + "\", \"Type\": \"" + e.name + "\", \"Count\": " + std::to_string(metal.sizes[i] / e.size);
        if (l && l->drawn) {
            out += ", \"Rule\": {\"Seed\": " + std::to_string(l->rule.seed) + ", \"Low\": " + std::to_string(l->rule.low) + ", \"High\": " + std::to_string(l->rule.high) + ", \"Scale\": " + number(l->rule.scale) + "}";
        } else if (l) {
            out += ", \"Given\": {" + keep(l->given.data(), l->given.size()) + "}";
        }
        const ggml_tensor * x = cpu.roots[i];
        if (t == last || (l && memcmp(before[i].data(), x->data, before[i].size()) != 0)) {
            changed = true;
            out += ", " + want(t, x, c.tolerance);
        } else if (!l) {
            out += ", \"Free\": true";
        }
        out += "}";
    }
    if (!changed || dispatches.empty()) {
        throw std::runtime_error("nothing is computed");
    }
    out += "],\n  \"Steps\": [";
    for (size_t i = 0; i < dispatches.size(); i++) {
        const Dispatch & d = dispatches[i];
        out += (i ? ",\n   " : "\n   ") + std::string("{\"Kernel\": \"") + d.kernel + "\"";
        const char * separator = ", \"Constants\": [";
        for (auto & k : d.constants) {
            out += separator + std::string("{\"Index\": ") + std::to_string(k.index) + ", \"Type\": \"" + k.type + "\", \"Value\": " + std::to_string(k.value) + "}";
            separator = ", ";
        }
        out += (d.constants.empty() ? "" : "]") + std::string(", \"Bind\": [");
        separator = "";
        for (auto & a : d.arguments) {
            out += separator + std::string("{\"Slot\": ") + std::to_string(a.slot);
            if (a.address) {
                const size_t r = metal.root(a.address), at = a.address - (char *) metal.roots[r]->data;
                out += ", \"Arg\": \"" + names[r] + "\"" + (at ? ", \"Offset\": " + std::to_string(at) : "");
            } else {
                out += ", \"Bytes\": \"";
                for (uint8_t b : a.bytes) {
                    char hex[3];
                    snprintf(hex, sizeof hex, "%02x", b);
                    out += hex;
                }
                out += "\"";
            }
            out += "}";
            separator = ", ";
        }
        for (auto & m : d.threadgroup) {
            out += separator + std::string("{\"Slot\": ") + std::to_string(m.slot) + ", \"Threadgroup\": " + std::to_string(m.bytes) + "}";
        }
        char grid[200];
        snprintf(grid, sizeof grid, "], \"Groups\": [%d, %d, %d], \"Group\": [%d, %d, %d]}", d.groups[0], d.groups[1], d.groups[2], d.group[0], d.group[1], d.group[2]);
        out += grid;
    }
    return out + "]}";
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s CASES.json CASES.bin\n", argv[0]);
        return 2;
    }
    ggml_cpu_init();
    FILE * json = fopen(argv[1], "w");
    std::string separator = "[\n";
    for (auto & c : cases()) {
        if (getenv("VERBOSE")) {
            fprintf(stderr, "%s\n", c.name.c_str());
        }
        try {
            fprintf(json, "%s%s", separator.c_str(), text(c).c_str());
        } catch (const std::exception & e) {
            fprintf(stderr, "%s: %s\n", c.name.c_str(), e.what());
            return 1;
        }
        separator = ",\n";
    }
    fprintf(json, "\n]\n");
    fclose(json);
    FILE * bin = fopen(argv[2], "wb");
    fwrite(data.data(), 1, data.size(), bin);
    return fclose(bin) ? 1 : 0;
}
