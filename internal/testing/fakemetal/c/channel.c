// Requests to the Go half over a socket: one at a time, each with an answer.
#include "metal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t talking = PTHREAD_MUTEX_INITIALIZER;
static int fd = -1;

void put(struct message *m, const void *bytes, size_t n) {
	if (m->n + n > m->room) {
		m->room = 2 * (m->n + n) + 64;
		m->bytes = realloc(m->bytes, m->room);
	}
	if (n) memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}
void put32(struct message *m, uint32_t v) { put(m, &v, sizeof v); }
void put64(struct message *m, uint64_t v) { put(m, &v, sizeof v); }
void put_text(struct message *m, const char *text) {
	put32(m, (uint32_t)strlen(text));
	put(m, text, strlen(text));
}

static bool all(ssize_t (*f)(int, void *, size_t), void *bytes, size_t n) {
	for (char *at = bytes; n > 0;) {
		ssize_t done = f(fd, at, n);
		if (done < 0 && errno == EINTR) continue;
		if (done <= 0) return false;
		at += done, n -= (size_t)done;
	}
	return true;
}
static ssize_t writing(int to, void *bytes, size_t n) { return write(to, bytes, n); }
static ssize_t reading(int from, void *bytes, size_t n) { return read(from, bytes, n); }

void ask(enum request what, struct message *m, struct answer *a) {
	uint32_t head[2] = {(uint32_t)what, (uint32_t)m->n};
	*a = (struct answer){.status = 1};
	pthread_mutex_lock(&talking);
	bool ok = fd >= 0 && all(writing, head, sizeof head) && all(writing, m->bytes, m->n) && all(reading, head, sizeof head);
	a->n = ok ? head[1] : 0;
	a->bytes = calloc(1, a->n + 1);
	ok = ok && all(reading, a->bytes, a->n);
	pthread_mutex_unlock(&talking);
	if (ok) {
		a->status = head[0];
	} else {
		free(a->bytes);
		a->bytes = strdup("nobody serves Metal any more");
		a->n = strlen(a->bytes);
	}
	free(m->bytes);
	*m = (struct message){0};
}

static void *piece(struct answer *a, size_t n) {
	if (n > a->n - a->at) {
		fail("an answer of %zu bytes is too short", a->n);
		static char nothing[8];
		a->at = a->n;
		return nothing;
	}
	a->at += n;
	return a->bytes + a->at - n;
}
uint32_t get32(struct answer *a) {
	uint32_t v;
	memcpy(&v, piece(a, sizeof v), sizeof v);
	return v;
}
uint64_t get64(struct answer *a) {
	uint64_t v;
	memcpy(&v, piece(a, sizeof v), sizeof v);
	return v;
}
// get_text reads a text, which ends with a zero byte that its length counts.
const char *get_text(struct answer *a) {
	uint32_t n = get32(a);
	return n ? piece(a, n) : "";
}

bool connected(void) { return fd >= 0; }
_Atomic long connection;

// fakemetal_connect takes the library's end of the socket, and makes the device.
EXPORT void fakemetal_connect(int socket) {
	fd = socket;
	connection++;
	the_device = new_object(&MTLDevice);
	gpu_begin();
}

// fakemetal_disconnect waits until nothing is in flight, ends all threads and closes the socket. It
// returns how many command buffers had to be given up.
EXPORT long fakemetal_disconnect(void) {
	long left = drain();
	end_capture();
	gpu_end();
	release(the_device);
	the_device = NULL;
	pthread_mutex_lock(&talking);
	close(fd);
	fd = -1;
	pthread_mutex_unlock(&talking);
	return left;
}
