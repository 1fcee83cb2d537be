// Blit encoders, which copy and fill memory. Their commands run as dispatches do, in order within the encoder; what orders
// encoders orders them too.
#include "metal.h"

#include <stdlib.h>
#include <string.h>

bool push_group(long *groups, object *name, sel s);
void pop_group(long *groups, sel s);

struct blit_encoder { object base; struct command_buffer *c; struct pass *pass; bool ended; long groups; };

static object *blit_encoder(SELF) {
	struct command_buffer *c = (struct command_buffer *)self;
	if (c->status >= COMMITTED || c->open) {
		fail("%s: %s", s, c->open ? "an encoder of the command buffer has not ended" : "the command buffer was committed");
		return NULL;
	}
	struct blit_encoder *e = (struct blit_encoder *)new_object(&MTLBlitCommandEncoder);
	e->c = (struct command_buffer *)retain(self);
	e->pass = calloc(1, sizeof *e->pass);
	e->pass->first_sample = e->pass->last_sample = (uint64_t)NO_SAMPLE;
	struct item *x = calloc(1, sizeof *x);
	x->kind = PASS, x->pass = e->pass;
	add_to(&c->items, x);
	c->open = &e->base;
	return autorelease(&e->base);
}
static void encoder_dealloc(object *o) {
	struct blit_encoder *e = (struct blit_encoder *)o;
	if (!e->ended) {
		fail("a blit encoder is freed that has not ended");
		e->c->open = NULL;
	}
	release(&e->c->base);
}

static bool encoding(struct blit_encoder *e, sel s) {
	if (e->ended) fail("%s: the encoder has ended", s);
	return !e->ended;
}

// within returns whether bytes lie in a buffer, and notes a mistake if not.
static bool within(object *buffer, uint64_t from, uint64_t n, sel s) {
	if (!given(buffer, &MTLBuffer, s)) return false;
	uint64_t length = resource_of(buffer)->length;
	if (n > 0 && from <= length && n <= length - from) return true;
	fail("%s: %lu bytes from byte %lu on, in a buffer of %lu", s, (unsigned long)n, (unsigned long)from, (unsigned long)length);
	return false;
}
static void add_use(struct blit_encoder *e, struct launch *l, object *buffer, bool writes) {
	struct resource *r = resource_of(buffer);
	keep(e->c, buffer);
	fly(e->c, r);
	__atomic_add_fetch(&r->refs, 1, __ATOMIC_SEQ_CST);
	l->uses[l->n++] = (struct use){r, !writes, writes};
	if (writes && r->read_only) fail("a blit writes memory of the host that is mapped for reading");
}
static void add_command(struct blit_encoder *e, struct launch *l, struct blit b) {
	struct command *k = calloc(1, sizeof *k);
	l->blit = malloc(sizeof b);
	*l->blit = b;
	k->kind = DISPATCH, k->launch = l;
	add_to(&e->pass->commands, k);
}

static void copy(SELF, object *from, uintptr_t at, object *to, uintptr_t there, uintptr_t n) {
	struct blit_encoder *e = (struct blit_encoder *)self;
	if (!encoding(e, s) || !within(from, at, n, s) || !within(to, there, n, s)) return;
	if (from == to && at < there + n && there < at + n) {
		fail("%s: the two parts of the buffer overlap", s);
		return;
	}
	struct launch *l = calloc(1, sizeof *l);
	add_use(e, l, from, false);
	add_use(e, l, to, true);
	add_command(e, l, (struct blit){resource_of(to)->address + there, resource_of(from)->address + at, n, 0});
}
static void fill(SELF, object *to, uintptr_t at, uintptr_t n, uint8_t value) {
	struct blit_encoder *e = (struct blit_encoder *)self;
	if (!encoding(e, s) || !within(to, at, n, s)) return;
	struct launch *l = calloc(1, sizeof *l);
	add_use(e, l, to, true);
	add_command(e, l, (struct blit){resource_of(to)->address + at, NULL, n, value});
}
void run_blit(const struct blit *b) {
	if (b->from) memcpy(b->to, b->from, b->length);
	else memset(b->to, b->value, b->length);
}

void end_blits(SELF) {
	struct blit_encoder *e = (struct blit_encoder *)self;
	if (!encoding(e, s)) return;
	if (e->groups) fail("%s: %ld debug groups are open", s, e->groups);
	e->ended = true;
	e->c->open = NULL;
}
static void push(SELF, object *name) { push_group(&((struct blit_encoder *)self)->groups, name, s); }
static void pop(SELF) { pop_group(&((struct blit_encoder *)self)->groups, s); }

class MTLBlitCommandEncoder = {.name = "MTLBlitCommandEncoder", .protocol = true, .super = &MTLCommandEncoder, .size = sizeof(struct blit_encoder), .dealloc = encoder_dealloc,
	.methods = (struct method[]){{"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", copy}, {"fillBuffer:range:value:", fill},
		{"pushDebugGroup:", push}, {"popDebugGroup", pop}, {0}}};

__attribute__((constructor)) static void add(void) {
	add_class(&MTLBlitCommandEncoder);
	static struct method commands[] = {{"blitCommandEncoder", blit_encoder}, {0}};
	add_methods(&MTLCommandBuffer, commands, NULL);
}
