// A Metal device that executes nothing: it writes down what ggml's Metal back end dispatches.
#pragma once

#include "ggml-metal-ops.h"

#include <cstdint>
#include <string>
#include <vector>

// Argument of a kernel: bytes, or an address in the memory that the tensors lie in.
struct Argument {
    int                  slot;
    std::vector<uint8_t> bytes;
    const char *         address = nullptr;
};

// Constant is the value of a function constant.
struct Constant {
    int          index;
    std::string  type;
    int64_t      value;
};

struct Memory {
    int    slot;
    size_t bytes;
};

struct Dispatch {
    std::string           kernel;
    std::vector<Constant> constants;
    std::vector<Argument> arguments;
    std::vector<Memory>   threadgroup;
    int                   groups[3];
    int                   group[3];
};

// record encodes all nodes of a graph, whose tensors have memory.
std::vector<Dispatch> record(ggml_cgraph * graph);

// allocated is how many bytes the Metal back end gives a tensor.
size_t allocated(const ggml_tensor * tensor);
