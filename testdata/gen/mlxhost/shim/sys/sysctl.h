#pragma once
#include <stddef.h>
#define CTL_HW 6

extern "C" int sysctlbyname(const char* name, void* value, size_t* size, void* to, size_t to_size);
