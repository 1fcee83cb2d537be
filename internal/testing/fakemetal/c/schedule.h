// Nodes of the graph of commands, which schedule.c makes and gpu.c runs. The mutex gpu guards them.
#pragma once
#include "metal.h"

enum node_kind { RUN, JOIN, SAMPLING, SET, AWAIT };
struct node {
	long refs;
	enum node_kind kind;
	struct command_buffer *c;
	struct pass *pass;
	struct launch *launch;
	bool own_launch; // the launch is freed with the node: it is an indirect command's
	object *o;       // an event, or a counter sample buffer
	uint64_t value;
	uint64_t serial;
	long waits;
	struct list next;
	bool done, leaves; // leaves: it is the end of its pass
};

extern struct list ready, awaiting; // nodes that can run, and nodes that wait for an event
extern struct list scheduled;       // command buffers that are built and have not completed, in order
extern struct list ended;           // command buffers that have run and not completed yet
extern long in_flight, demanded;
extern double last_given, last_progress;
extern bool running;

uint64_t chance(uint64_t n); // a random number below n
void seed_chance(uint64_t seed);
void finish(struct node *);  // the node has run
void fail_command_buffer(struct command_buffer *, long code, const char *text);
const char *text_of_code(long code); // Metal's text for the code of a command buffer's error
