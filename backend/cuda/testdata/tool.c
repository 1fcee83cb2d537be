// A tool as Nsight Systems is one: it asks a program for its tables of functions, and puts there those that it
// wants to be called. It writes down what it hears.

typedef unsigned long long word;
typedef void (*function)(void);
typedef const void *(*export_table)(unsigned id);

struct callbacks {
	word size;
	int (*table)(unsigned module, function ***table, unsigned *count);
};

struct versions {
	word size;
	unsigned version, reserved;
	void (*tool)(unsigned version);
};

char tool_heard[1 << 16];
unsigned tool_length;

static void hear(const char *s) {
	while (*s && tool_length + 1 < sizeof tool_heard)
		tool_heard[tool_length++] = *s++;
}

static int push(const char *name) {
	hear("<");
	hear(name);
	return 0;
}

static int pop(void) {
	hear(">");
	return 0;
}

int InitializeInjectionNvtx2(export_table get) {
	const struct versions *v = get(3);
	const struct callbacks *c = get(1);
	if (!v || v->size < sizeof *v || v->version != 3 || !c || c->size < sizeof *c || get(2) || get(99))
		return 0;
	v->tool(3);
	for (unsigned module = 1; module < 7; module++) {
		static const unsigned want[] = {0, 16, 9, 16, 7, 16, 7};
		function **table;
		unsigned count;
		if (!c->table(module, &table, &count) || count != want[module] || table[0] == 0 || table[count] != 0)
			return 0;
		if (module == 1) {
			*table[9] = (function)push;
			*table[11] = (function)pop;
		}
	}
	function **none;
	return !c->table(0, &none, 0) && !c->table(7, &none, 0);
}
