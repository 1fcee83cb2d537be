// Included before all else where MLX asks which system it runs on: what clang knows of other targets is true of all
// versions. The system is that of the stand-in for Metal, macOS 15.
#pragma once
#include <stdlib.h>

inline bool mlxhost_available(const char* system) { // "macOS 26.2"
  return atoi(system + sizeof "macOS") <= 15;
}
#define __builtin_available(first, ...) mlxhost_available(#first)
