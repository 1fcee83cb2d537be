// How a case says what it computes of what.
#pragma once

#include "ggml.h"

#include <functional>
#include <string>
#include <vector>

// Rule draws what a tensor holds: element i is (low + hash(seed, i) mod (high-low+1)) · scale, as
// internal/testing/kernelcases has it.
struct Rule {
    uint64_t seed;
    int64_t  low, high;
    double   scale;
};

struct Leaf {
    ggml_tensor *        tensor;
    bool                 drawn;
    Rule                 rule;
    std::vector<uint8_t> given;
};

// Build collects the leaves of a graph.
struct Build {
    ggml_context *    ctx;
    bool              exact; // weights are float32 with the values that they have
    std::vector<Leaf> leaves;

    ggml_tensor * named(ggml_type type, std::vector<int64_t> ne);
    // drawn is a leaf of numbers between low and high. A weight's are of float32 if exact.
    ggml_tensor * drawn(ggml_type type, std::vector<int64_t> ne, double low = -1, double high = 1, bool weight = false);
    // integers is a leaf of integers between low and high.
    ggml_tensor * integers(ggml_type type, std::vector<int64_t> ne, int64_t low, int64_t high);
    // given is a leaf that holds these values.
    ggml_tensor * given(ggml_type type, std::vector<int64_t> ne, std::vector<double> values);
    // weights is a leaf of any type, drawn and then rounded or quantized by ggml.
    ggml_tensor * weights(ggml_type type, std::vector<int64_t> ne);
};

// Tolerance of a case's results.
struct Tolerance {
    double      error; // of each element, of the root mean square of all
    const char * why;
};

struct Case {
    std::string                           name;
    Tolerance                             tolerance;
    std::function<ggml_tensor *(Build &)> make;
    bool                                  extra  = false; // one of many alike, which tests may leave out
    const char *                          defect = "";    // why what ggml dispatches gives something else
};

std::vector<Case> cases();
