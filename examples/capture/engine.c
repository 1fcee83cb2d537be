/* An engine that logs its step: two layers of norm, cache, mean over the cache, and a gated feed-forward network.
 *   cc -I ../../capture engine.c -o engine && ./engine engine.metal engine.mlxtrace
 *   mlxc import engine.mlxtrace -o engine.mlxg && mlxc optimize engine.mlxg -o o.mlxg && mlxreplay run o.mlxg --device softmetal … */
#define MLXREC_IMPLEMENTATION
#include "mlxrec.h"

enum { E = 256, F = 512, LAYERS = 2, CONTEXT = 64, STEPS = 4 };

static uint64_t weights(mlxrec *r, const char *kind, int layer, size_t bytes, uint16_t pattern) {
  static uint16_t data[E * F];
  char name[32];
  snprintf(name, sizeof name, "%s%d", kind, layer);
  for (size_t i = 0; i < bytes / 2; i++) data[i] = (uint16_t)(pattern + i * 7 % 61); /* small halves */
  return mlxrec_buffer(r, bytes, name, NULL, data);
}

int main(int argc, char **argv) {
  static char text[1 << 16];
  static float ones[E], x[E];
  FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
  mlxrec *r = f ? mlxrec_open(argv[2], "engine") : NULL;
  if (!r) { fprintf(stderr, "usage: engine engine.metal engine.mlxtrace\n"); return 2; }
  for (int i = 0; i < E; i++) ones[i] = 1;

  /* glue: what the engine has */
  uint64_t lib = mlxrec_source(r, "engine.metal", text, fread(text, 1, sizeof text, f), NULL);
  uint64_t rms = mlxrec_kernel(r, lib, "my_rms", NULL, 0), mv = mlxrec_kernel(r, lib, "my_mv", NULL, 0), mean = mlxrec_kernel(r, lib, "my_mean", NULL, 0);
  uint64_t silu_mul = mlxrec_kernel(r, lib, "my_silu_mul", NULL, 0), add = mlxrec_kernel(r, lib, "my_add", NULL, 0);
  uint64_t in = mlxrec_buffer(r, 4 * E, "x", "input", NULL), out = mlxrec_buffer(r, 4 * E, "y", "output", NULL);
  uint64_t h = mlxrec_buffer(r, 4 * E, "h", NULL, NULL), t = mlxrec_buffer(r, 4 * E, "t", NULL, NULL), d = mlxrec_buffer(r, 4 * E, "d", NULL, NULL);
  uint64_t g = mlxrec_buffer(r, 4 * F, "g", NULL, NULL), u = mlxrec_buffer(r, 4 * F, "u", NULL, NULL), s = mlxrec_buffer(r, 4 * F, "s", NULL, NULL);
  uint64_t norm[LAYERS], gate[LAYERS], up[LAYERS], down[LAYERS], cache[LAYERS];
  for (int l = 0; l < LAYERS; l++) {
    char name[32];
    snprintf(name, sizeof name, "norm%d", l), norm[l] = mlxrec_buffer(r, 4 * E, name, NULL, ones);
    snprintf(name, sizeof name, "cache%d", l), cache[l] = mlxrec_buffer(r, 4 * E * CONTEXT, name, NULL, NULL);
    gate[l] = weights(r, "gate", l, 2 * E * F, 0x2400), up[l] = weights(r, "up", l, 2 * E * F, 0xa400), down[l] = weights(r, "down", l, 2 * E * F, 0x2800);
  }
  for (uint32_t pos = 0; pos < STEPS; pos++) {
    for (int i = 0; i < E; i++) x[i] = (float)((i * 5 + (int)pos * 3) % 17) / 8 - 1;
    mlxrec_step(r, "step", MLXREC_SERIAL);
    mlxrec_param(r, "pos", pos);
    mlxrec_write(r, in, 0, x, sizeof x);
    mlxrec_copy(r, in, 0, h, 0, 4 * E);
    for (int l = 0; l < LAYERS; l++) {
      uint32_t n = E, rows[2] = {E, pos + 1}, wide[2] = {F, E}, narrow[2] = {E, F};
      float eps = 1e-5f;
      mlxrec_use(r, rms), mlxrec_bind(r, 0, h, 0), mlxrec_bind(r, 1, norm[l], 0), mlxrec_bind(r, 2, cache[l], 4ull * E * pos);
      mlxrec_bytes(r, 3, &n, 4), mlxrec_bytes(r, 4, &eps, 4), mlxrec_threadgroups(r, 1, 1, 1, 256, 1, 1);
      mlxrec_use(r, mean), mlxrec_bind(r, 0, cache[l], 0), mlxrec_bind(r, 1, t, 0), mlxrec_bytes(r, 2, rows, 8), mlxrec_threads(r, E, 1, 1, 256, 1, 1);
      mlxrec_use(r, mv), mlxrec_bind(r, 0, gate[l], 0), mlxrec_bind(r, 1, t, 0), mlxrec_bind(r, 2, g, 0), mlxrec_bytes(r, 3, wide, 8);
      mlxrec_threadgroups(r, F, 1, 1, 32, 1, 1);
      mlxrec_bind(r, 0, up[l], 0), mlxrec_bind(r, 2, u, 0), mlxrec_threadgroups(r, F, 1, 1, 32, 1, 1);
      mlxrec_use(r, silu_mul), mlxrec_bind(r, 0, g, 0), mlxrec_bind(r, 1, u, 0), mlxrec_bind(r, 2, s, 0), mlxrec_threads(r, F, 1, 1, 256, 1, 1);
      mlxrec_use(r, mv), mlxrec_bind(r, 0, down[l], 0), mlxrec_bind(r, 1, s, 0), mlxrec_bind(r, 2, d, 0), mlxrec_bytes(r, 3, narrow, 8);
      mlxrec_threadgroups(r, E, 1, 1, 32, 1, 1);
      mlxrec_use(r, add), mlxrec_bind(r, 0, h, 0), mlxrec_bind(r, 1, d, 0), mlxrec_bind(r, 2, h, 0), mlxrec_threads(r, E, 1, 1, 256, 1, 1);
    }
    mlxrec_copy(r, h, 0, out, 0, 4 * E);
    mlxrec_end(r);
  }
  return mlxrec_close(r) ? (perror(argv[2]), 1) : 0;
}
