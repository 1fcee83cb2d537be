// An Objective-C runtime as far as Metal's callers see it: classes, selectors, messages, reference
// counts, autorelease pools. What a caller does wrong is noted (fail), and the program goes on.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef const char *sel; // the one copy of a selector's name
typedef struct object object;
typedef struct class class;

struct object {
	class *isa;
	long refs;
};

struct method {
	const char *name; // becomes the selector when the class is added
	void *code;       // f(object *self, sel, …)
};

struct class {
	class *isa; // NULL: that tells a class from other objects
	const char *name;
	class *super;
	size_t size;
	struct method *methods, *statics; // each ends with a name of NULL; NULL is none
	void (*dealloc)(object *);        // frees what the object has, not the object
	long live;                        // objects of it that have not been freed
	class *next;
};

void add_class(class *c);
sel intern(const char *name);

object *new_object(class *c); // zeroed, one reference, the caller's
object *retain(object *o);
void release(object *o);
object *autorelease(object *o); // released when the pool on top of this thread's ends
bool is_kind(object *o, class *c);

// fail notes that the caller has done what it must not.
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

extern class NSObject, NSString, NSArray, NSURL, NSError, NSData;
object *string(const char *text);         // autoreleased
const char *text_of(object *string);      // "" of nil
object *error(const char *domain, long code, const char *description); // autoreleased
object *array(object **elements, size_t n); // autoreleased
object *new_array(object **elements, size_t n); // the caller's
object *data(const void *bytes, size_t n);  // autoreleased
