// The functions of ggml-metal-device.m that the Metal back end's portable half calls. A pipeline
// is the name of its function with its constants; an encoder appends to the list.
#include "recorder.h"

#include "ggml-impl.h"

#include <cstring>
#include <map>

struct ggml_metal_cv {
    std::vector<Constant> constants;
};

struct ggml_metal_pipeline {
    std::string           function;
    std::vector<Constant> constants;
};

struct ggml_metal_encoder {
    Dispatch now;
    int      unused = 0;
};

struct ggml_metal_library {
    std::map<std::string, ggml_metal_pipeline> pipelines;
};

struct ggml_metal_device {
    ggml_metal_device_props props;
    ggml_metal_library      library;
};

static std::vector<Dispatch> recorded;

static ggml_metal_device * device() {
    static ggml_metal_device d = [] {
        ggml_metal_device d {};
        // What every Apple GPU since the M1 has. Tensors of Metal 4 are not known to mlxc.
        d.props.max_theadgroup_memory_size = 32768;
        d.props.has_simdgroup_reduction    = true;
        d.props.has_simdgroup_mm           = true;
        d.props.has_unified_memory         = true;
        d.props.has_bfloat                 = true;
        d.props.supports_gpu_family_apple7 = true;
        return d;
    }();
    return &d;
}

extern "C" {

ggml_metal_cv_t ggml_metal_cv_init(void) { return new ggml_metal_cv; }
void ggml_metal_cv_free(ggml_metal_cv_t cv) { delete cv; }
void ggml_metal_cv_set_int16(ggml_metal_cv_t cv, int16_t value, int32_t idx) { cv->constants.push_back({ idx, "i16", value }); }
void ggml_metal_cv_set_int32(ggml_metal_cv_t cv, int32_t value, int32_t idx) { cv->constants.push_back({ idx, "i32", value }); }
void ggml_metal_cv_set_bool(ggml_metal_cv_t cv, bool value, int32_t idx) { cv->constants.push_back({ idx, "bool", value }); }

ggml_metal_pipeline_t ggml_metal_pipeline_init(void) { return new ggml_metal_pipeline; }
void ggml_metal_pipeline_free(ggml_metal_pipeline_t pipeline) { delete pipeline; }
int ggml_metal_pipeline_max_theads_per_threadgroup(ggml_metal_pipeline_with_params) { return 1024; }

ggml_metal_pipeline_with_params ggml_metal_library_get_pipeline(ggml_metal_library_t lib, const char * name) {
    ggml_metal_pipeline_with_params out {};
    auto found = lib->pipelines.find(name);
    out.pipeline = found == lib->pipelines.end() ? nullptr : &found->second;
    return out;
}

ggml_metal_pipeline_with_params ggml_metal_library_compile_pipeline(ggml_metal_library_t lib, const char * base, const char * name, ggml_metal_cv_t cv) {
    lib->pipelines[name] = { base, cv ? cv->constants : std::vector<Constant>() };
    return ggml_metal_library_get_pipeline(lib, name);
}

ggml_metal_device_t ggml_metal_library_get_device(ggml_metal_library_t) { return device(); }
ggml_metal_library_t ggml_metal_device_get_library(ggml_metal_device_t dev) { return &dev->library; }
const ggml_metal_device_props * ggml_metal_device_get_props(ggml_metal_device_t dev) { return &dev->props; }
ggml_metal_device_t ggml_metal_device_init(int) { return device(); }
void ggml_metal_device_free(ggml_metal_device_t) {}
bool ggml_metal_device_supports_op(ggml_metal_device_t, const ggml_tensor *) { return true; }

ggml_metal_encoder_t ggml_metal_encoder_init(ggml_metal_cmd_buf_t, bool) { return new ggml_metal_encoder; }
void ggml_metal_encoder_free(ggml_metal_encoder_t encoder) { delete encoder; }
void ggml_metal_encoder_debug_group_push(ggml_metal_encoder_t, const char *) {}
void ggml_metal_encoder_debug_group_pop(ggml_metal_encoder_t) {}
void ggml_metal_encoder_memory_barrier(ggml_metal_encoder_t) {}
void ggml_metal_encoder_end_encoding(ggml_metal_encoder_t) {}

// What is bound stays bound for the next dispatches; a new pipeline has parameters of its own.
void ggml_metal_encoder_set_pipeline(ggml_metal_encoder_t encoder, ggml_metal_pipeline_with_params pipeline) {
    encoder->now.kernel    = pipeline.pipeline->function;
    encoder->now.constants = pipeline.pipeline->constants;
    encoder->now.arguments.clear();
    encoder->now.threadgroup.clear();
}

static void bind(ggml_metal_encoder_t encoder, Argument a) {
    for (auto & b : encoder->now.arguments) {
        if (b.slot == a.slot) {
            b = a;
            return;
        }
    }
    encoder->now.arguments.push_back(a);
}

void ggml_metal_encoder_set_bytes(ggml_metal_encoder_t encoder, void * data, size_t size, int idx) {
    const uint8_t * p = (const uint8_t *) data;
    bind(encoder, { idx, std::vector<uint8_t>(p, p + size), nullptr });
}

void ggml_metal_encoder_set_buffer(ggml_metal_encoder_t encoder, ggml_metal_buffer_id buffer, int idx) {
    bind(encoder, { idx, {}, (const char *) buffer.metal + buffer.offs });
}

void ggml_metal_encoder_set_threadgroup_memory_size(ggml_metal_encoder_t encoder, size_t size, int idx) {
    if (size > 0) {
        encoder->now.threadgroup.push_back({ idx, size });
    }
}

void ggml_metal_encoder_dispatch_threadgroups(ggml_metal_encoder_t encoder, int tg0, int tg1, int tg2, int tptg0, int tptg1, int tptg2) {
    Dispatch d = encoder->now;
    const int groups[3] = { tg0, tg1, tg2 }, group[3] = { tptg0, tptg1, tptg2 };
    memcpy(d.groups, groups, sizeof groups);
    memcpy(d.group, group, sizeof group);
    recorded.push_back(d);
}

ggml_metal_buffer_id ggml_metal_buffer_get_id(ggml_metal_buffer_t, const ggml_tensor * t) { return { t->data, 0 }; }

} // extern "C"

std::vector<Dispatch> record(ggml_cgraph * graph) {
    recorded.clear();
    ggml_metal_op_t op = ggml_metal_op_init(device(), nullptr, graph, 0, ggml_graph_n_nodes(graph), true, false, false, 0, 0);
    for (int i = 0; i < ggml_metal_op_n_nodes(op);) {
        i += ggml_metal_op_encode(op, i);
    }
    ggml_metal_op_free(op);
    return recorded;
}

// As in ggml-metal.cpp, which has no name for it outside.
size_t allocated(const ggml_tensor * t) {
    size_t n = ggml_nbytes(t);
    switch (t->op) {
        case GGML_OP_MUL_MAT_ID:
            return n + ggml_metal_op_mul_mat_id_extra_tpe(t) + ggml_metal_op_mul_mat_id_extra_ids(t);
        case GGML_OP_FLASH_ATTN_EXT:
            return n + ggml_metal_op_flash_attn_ext_extra_pad(t) + ggml_metal_op_flash_attn_ext_extra_blk(t) + ggml_metal_op_flash_attn_ext_extra_tmp(t);
        case GGML_OP_CUMSUM:
        case GGML_OP_ARGSORT:
            return 2 * n;
        case GGML_OP_TOP_K:
            return 2 * sizeof(int32_t) * ggml_nelements(t->src[0]);
        default:
            return n;
    }
}
