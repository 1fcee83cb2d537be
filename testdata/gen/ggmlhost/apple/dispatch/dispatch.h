// As much of libdispatch as ggml's Metal backend calls (dispatch.c).
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef struct dispatch_queue *dispatch_queue_t;
typedef struct dispatch_group *dispatch_group_t;
typedef struct dispatch_semaphore *dispatch_semaphore_t;
typedef uint64_t dispatch_time_t;
typedef const void *dispatch_queue_attr_t;
#define DISPATCH_TIME_FOREVER (~(dispatch_time_t)0)
#define DISPATCH_QUEUE_CONCURRENT ((dispatch_queue_attr_t)1)
enum { QOS_CLASS_DEFAULT = 0x15, QOS_CLASS_USER_INITIATED = 0x19 };

dispatch_queue_t dispatch_queue_create(const char *label, dispatch_queue_attr_t kind);
dispatch_queue_t dispatch_get_global_queue(intptr_t identifier, uintptr_t flags);
void dispatch_apply(size_t n, dispatch_queue_t queue, void (^block)(size_t));
dispatch_group_t dispatch_group_create(void);
void dispatch_group_async(dispatch_group_t group, dispatch_queue_t queue, void (^block)(void));
intptr_t dispatch_group_wait(dispatch_group_t group, dispatch_time_t until);
dispatch_semaphore_t dispatch_semaphore_create(intptr_t value);
intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore, dispatch_time_t until);
intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore);
void dispatch_release(void *object);
