// Times llama.cpp's CUDA backend on one model, as its own llama-bench does: scripts/fetch-llama-cuda.sh
// builds it, bench_gpu_llamacpp.py runs it.
//
//   llama-peer MODEL.gguf ROUNDS SECONDS TEST … [cpu]
//
// TEST: pN, a prompt of N tokens in one batch; nN, N tokens one after the other from an empty context;
// nN@D, with D tokens before them. All layers are on the GPU, flash attention is on, the cache is float16;
// the rest is llama.cpp's default. Ids are random; one step ends when its logits are on the host. Prints a
// line of JSON that names the device, then one for each test, with the µs of a whole test in each round
// after the first, which is not counted. No test begins after SECONDS. Logits that are no numbers end the
// program. "cpu": without a GPU, to try the program.

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "llama.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] static void fail(const std::string & why, int code) {
    fprintf(stderr, "llama-peer: %s\n", why.c_str());
    exit(code);
}

static void errors_only(ggml_log_level level, const char * text, void *) {
    if (level == GGML_LOG_LEVEL_ERROR || level == GGML_LOG_LEVEL_WARN) {
        fputs(text, stderr);
    }
}

struct test {
    std::string name;
    bool prompt;
    int  tokens, depth;
};

// A test by its name: p512, n128, n64@512.
static test parse(const std::string & name) {
    test t = {name, name[0] == 'p', 0, 0};
    char end = 0;
    const int n = sscanf(name.c_str() + (name.empty() ? 0 : 1), "%d@%d%c", &t.tokens, &t.depth, &end);
    if (name.empty() || (name[0] != 'p' && name[0] != 'n') || n < 1 || n > 2 || t.tokens < 1 || t.depth < 0 || (t.prompt && n > 1)) {
        fail("there is no test \"" + name + "\" (there are pN, nN and nN@D)", 2);
    }
    return t;
}

// Feeds n random ids, as one batch or one by one.
static void feed(llama_context * ctx, int n, bool together, int vocab) {
    std::vector<llama_token> ids(n);
    for (llama_token & id : ids) {
        id = rand() % vocab;
    }
    for (int i = 0; i < n; i += together ? n : 1) {
        if (llama_decode(ctx, llama_batch_get_one(ids.data() + i, together ? n : 1)) != 0) {
            fail("llama_decode failed", 1);
        }
        if (!together) {
            llama_synchronize(ctx);
        }
    }
    llama_synchronize(ctx);
}

int main(int argc, char ** argv) {
    const double begin = now();
    std::vector<std::string> args(argv + 1, argv + argc);
    const bool cpu = !args.empty() && args.back() == "cpu";
    if (cpu) {
        args.pop_back();
    }
    if (args.size() < 4 || atoi(args[1].c_str()) < 1) {
        fail("usage: llama-peer MODEL.gguf ROUNDS SECONDS TEST ... [cpu]", 2);
    }
    const int rounds = atoi(args[1].c_str());
    const double seconds = atof(args[2].c_str());
    std::vector<test> tests;
    for (size_t i = 3; i < args.size(); i++) {
        tests.push_back(parse(args[i]));
    }

    llama_log_set(errors_only, nullptr);
    llama_backend_init();
    ggml_backend_dev_t device = ggml_backend_dev_by_type(cpu ? GGML_BACKEND_DEVICE_TYPE_CPU : GGML_BACKEND_DEVICE_TYPE_GPU);
    if (!device) {
        fail("there is no GPU", 1);
    }
    llama_model_params mp = llama_model_default_params();
    mp.n_gpu_layers = cpu ? 0 : 999;
    llama_model * model = llama_model_load_from_file(args[0].c_str(), mp);
    if (!model) {
        fail("cannot load " + args[0], 3);
    }
    char about[128] = "";
    llama_model_desc(model, about, sizeof about);
    printf("{\"device\": \"%s\", \"model\": \"%s\", \"bytes\": %llu, \"load_seconds\": %.2f}\n",
        ggml_backend_dev_description(device), about, (unsigned long long) llama_model_size(model), now() - begin);
    fflush(stdout);

    const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
    const int threads = std::clamp(int(std::thread::hardware_concurrency()), 1, 8);
    ggml_threadpool_params tp = ggml_threadpool_params_default(threads);
    ggml_threadpool * pool = ggml_threadpool_new(&tp);
    for (const test & t : tests) {
        if (now() - begin > seconds) {
            printf("{\"test\": \"%s\", \"failed\": \"the time is over\"}\n", t.name.c_str());
            continue;
        }
        llama_context_params cp = llama_context_default_params();
        cp.n_ctx           = t.tokens + t.depth;
        cp.n_batch         = cp.n_ctx; // what is fed together; it is computed in parts of the default size
        cp.n_threads       = cp.n_threads_batch = threads;
        cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
        llama_context * ctx = llama_init_from_model(model, cp);
        if (!ctx) {
            fail("cannot make a context", 1);
        }
        llama_attach_threadpool(ctx, pool, nullptr);
        std::string took;
        for (int round = 0; round <= rounds; round++) {
            llama_memory_clear(llama_get_memory(ctx), false);
            if (t.depth > 0) {
                feed(ctx, t.depth, true, vocab);
            }
            const double from = now();
            feed(ctx, t.tokens, t.prompt, vocab);
            if (round > 0) {
                char text[32];
                snprintf(text, sizeof text, "%s%.1f", round > 1 ? ", " : "", 1e6 * (now() - from));
                took += text;
            }
        }
        const float * logits = llama_get_logits_ith(ctx, -1);
        if (!std::all_of(logits, logits + vocab, [](float x) { return std::isfinite(x); })) {
            fail("the logits of " + t.name + " are not finite", 1);
        }
        printf("{\"test\": \"%s\", \"tokens\": %d, \"depth\": %d, \"microseconds\": [%s]}\n", t.name.c_str(), t.tokens, t.depth, took.c_str());
        fflush(stdout);
        llama_free(ctx);
    }
    ggml_threadpool_free(pool);
    llama_model_free(model);
    llama_backend_free();
}
