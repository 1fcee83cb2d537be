// The types that Objective-C programs share with the runtime.
#pragma once
#include <stdbool.h>

typedef struct objc_class *Class;
typedef struct objc_object { Class isa; } *id;
typedef struct objc_selector *SEL;
typedef bool BOOL;
#define YES 1
#define NO 0
#define nil 0
