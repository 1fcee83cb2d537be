#pragma once
#include <stdint.h>

extern "C" uintptr_t vm_page_size;
