// Included before ggml-metal-ops.cpp: what it binds inline has zeros where its structs have padding,
// so that the same cases are the same bytes.
#pragma once

#include "ggml-metal-device.h"

#include <type_traits>

template <typename T>
static void set_whole_bytes(ggml_metal_encoder_t encoder, T * data, size_t size, int idx) {
    if constexpr (!std::is_void_v<T>) {
        __builtin_clear_padding(data);
    }
    ggml_metal_encoder_set_bytes(encoder, data, size, idx);
}

#define ggml_metal_encoder_set_bytes set_whole_bytes
