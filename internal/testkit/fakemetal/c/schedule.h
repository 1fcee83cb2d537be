// Nodes, which schedule.c makes and gpu.c runs. gpu is held by who touches them.
#pragma once
#include "metal.h"

enum node_kind { RUN, JOIN, SAMPLING, SET, AWAIT };
struct node {
	long refs;
	enum node_kind kind;
	struct command_buffer *c;
	struct pass *pass;
	struct launch *launch;
	bool own_launch; // of an indirect command buffer
	object *o;       // event or sample buffer
	uint64_t value;
	uint64_t serial;
	long waits;
	struct list next;
	bool done, leaves; // leaves: it ends the pass
};

extern struct list ready, awaiting; // nodes
extern struct list ended;           // command buffers, not yet completed
extern long in_flight, demanded;
extern double last_given, last_progress;
extern bool running;

uint64_t chance(uint64_t n); // a random number below n
void seed_chance(uint64_t seed);
void finish(struct node *);  // it has run
void fail_command_buffer(struct command_buffer *, long code, const char *text);
const char *text_of_code(long code); // what Metal says of a command buffer's error
