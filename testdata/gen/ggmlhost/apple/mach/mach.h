// Memory from the kernel, in pages of 16 KiB as on Apple silicon.
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int kern_return_t;
typedef unsigned vm_map_t;
typedef uintptr_t vm_address_t, vm_size_t;
#define KERN_SUCCESS 0
#define VM_FLAGS_ANYWHERE 1

vm_map_t mach_task_self(void);
kern_return_t vm_allocate(vm_map_t task, vm_address_t *address, vm_size_t size, int flags);
kern_return_t vm_deallocate(vm_map_t task, vm_address_t address, vm_size_t size);
