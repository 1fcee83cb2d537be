// Times ggml_graph_optimize of ggml's Metal backend on a graph whose wiring
// `go run ./testdata/gen/wiring` wrote. bench_reorder_peer.py compiles and runs
// it.
//
//   reorder_peer WIRING MODE SECONDS OP OP OP OP OP
//
// OP: the ggml operation that stands for each of the five kernels. The optimizer
// looks at a node's operation, sources, memory and, for a few operations, shape
// and number of uses; a node here has those and computes nothing.
//
// MODE is where the tensors are:
//   touching    each at its bytes in a buffer, so the reuse of memory orders nodes
//   addresses   likewise, but each one element shorter: the optimizer takes a
//               range that ends where one seen earlier begins for a conflict
//   names       those that outlive a replay at their bytes, the others nowhere yet:
//               the optimizer keeps them apart by identity. So the scheduler of
//               ggml calls it. A read of bytes that no one node wrote is refused.
//
// Prints: nodes, ns a node (fastest run), runs, sets of concurrent nodes before
// and after by the Metal encoder's rule, nodes that moved to an earlier place.

#include "ggml-backend.h"
#include "ggml-impl.h"
#include "ggml-metal-common.h"
#include "ggml.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

[[noreturn]] static void fail(const char * what, const char * which = "") {
    fprintf(stderr, "reorder_peer: %s%s\n", what, which);
    exit(1);
}

static ggml_op op_called(const char * name) {
    for (int i = 0; i < GGML_OP_COUNT; i++) {
        if (strcmp(ggml_op_name(ggml_op(i)), name) == 0) {
            return ggml_op(i);
        }
    }
    fail("ggml has no operation ", name);
}

static std::vector<int64_t> read_words(const char * path) {
    FILE * f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        fail("cannot read ", path);
    }
    std::vector<int64_t> words(size_t(ftell(f)) / 8);
    rewind(f);
    if (fread(words.data(), 8, words.size(), f) != words.size()) {
        fail("cannot read ", path);
    }
    fclose(f);
    return words;
}

// How many sets of concurrent nodes a Metal encoder makes of this order: it puts
// a barrier before each node that conflicts with the set so far.
static int count_sets(ggml_cgraph * g) {
    ggml_mem_ranges_t set = ggml_mem_ranges_init(0);
    const int n = ggml_graph_n_nodes(g);
    int sets = n > 0;
    for (int i = 0; i < n; i++) {
        ggml_tensor * t = ggml_graph_node(g, i);
        if (!ggml_mem_ranges_check(set, t)) {
            ggml_mem_ranges_reset(set);
            sets++;
        }
        ggml_mem_ranges_add(set, t);
    }
    ggml_mem_ranges_free(set);
    return sets;
}

int main(int argc, char ** argv) {
    if (argc != 9) {
        fail("usage: reorder_peer WIRING touching|addresses|names SECONDS OP OP OP OP OP");
    }
    const std::vector<int64_t> words = read_words(argv[1]);
    const bool names = strcmp(argv[2], "names") == 0;
    const bool shorter = strcmp(argv[2], "addresses") == 0;
    if (!names && !shorter && strcmp(argv[2], "touching") != 0) {
        fail("no such mode: ", argv[2]);
    }
    const double seconds = atof(argv[3]);
    ggml_op ops[5];
    for (int i = 0; i < 5; i++) {
        ops[i] = op_called(argv[4 + i]);
    }
    const int64_t * w = words.data();

    struct memory {
        ggml_backend_buffer_t buffer;
        char * base;
        bool stays;
    };
    std::vector<memory> memories(size_t(*w++));
    for (auto & m : memories) {
        const size_t size = size_t(*w++) + 4096;
        m.stays = *w++ != 0;
        void * p = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0); // addresses only
        if (p == MAP_FAILED) {
            fail("no address space");
        }
        m.base = static_cast<char *>(p);
        m.buffer = ggml_backend_cpu_buffer_from_ptr(p, size);
    }

    const size_t n = size_t(*w++);
    // A leaf for each region that is read and that no node writes: few.
    const size_t capacity = n + 1024;
    ggml_init_params params = {};
    params.mem_size = capacity * (ggml_tensor_overhead() + 64) + ggml_graph_overhead_custom(capacity, false) + (1 << 20);
    params.no_alloc = true;
    ggml_context * ctx = ggml_init(params);
    ggml_cgraph * g = ggml_new_graph_custom(ctx, capacity, false);

    std::map<std::tuple<int64_t, int64_t, int64_t>, ggml_tensor *> at;
    auto make = [&](const int64_t * region) {
        const memory & m = memories[size_t(region[0])];
        ggml_tensor * t = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, region[2] / 4 - shorter);
        if (m.stays || !names) {
            ggml_backend_tensor_alloc(m.buffer, t, m.base + region[1]);
        }
        return t;
    };
    for (size_t i = 0; i < n; i++) {
        const ggml_op op = ops[*w++];
        const int64_t reads = *w++;
        const int64_t * to = w;
        w += 3;
        ggml_tensor * src[GGML_MAX_SRC] = {};
        for (int64_t k = 0; k < reads; k++, w += 3) {
            ggml_tensor *& t = at[{w[0], w[1], w[2]}];
            if (!t) {
                // What is read before anything is written is an input: eight at most.
                if (names && !memories[size_t(w[0])].stays && i >= 8) {
                    fail("names: a read of bytes that no one node wrote");
                }
                t = make(w);
            }
            src[k] = t;
        }
        ggml_tensor * t = make(to);
        t->op = op;
        std::copy(src, src + GGML_MAX_SRC, t->src);
        at[{to[0], to[1], to[2]}] = t;
        ggml_build_forward_expand(g, t);
    }
    if (size_t(ggml_graph_n_nodes(g)) != n) {
        fail("the graph lost nodes");
    }

    ggml_tensor ** nodes = ggml_graph_nodes(g);
    const std::vector<ggml_tensor *> recorded(nodes, nodes + n);
    const int before = count_sets(g);
    double least = 1e300, all = 0;
    int runs = 0;
    for (; runs < 3 || all < seconds; runs++) {
        std::copy(recorded.begin(), recorded.end(), nodes);
        const auto start = std::chrono::steady_clock::now();
        ggml_graph_optimize(g);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        least = std::min(least, took.count());
        all += took.count();
    }
    std::unordered_map<ggml_tensor *, size_t> place;
    for (size_t i = 0; i < n; i++) {
        place[recorded[i]] = i;
    }
    // A node moved up if one that was recorded before it now follows it.
    size_t moved = 0, lowest = n;
    for (size_t i = n; i-- > 0;) {
        const size_t p = place[nodes[i]];
        moved += p > lowest;
        lowest = std::min(lowest, p);
    }
    printf("%zu %.1f %d %d %d %zu\n", n, least * 1e9 / double(n), runs, before, count_sets(g), moved);
}
