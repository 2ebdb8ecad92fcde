#include <stdint.h>
#include <time.h>

// rts/prof/CCS.h
struct centre {
	intptr_t id;
	const char *label, *module, *source;
	uint64_t allocated;
	uintptr_t ticks;
	int is_caf;
	struct centre *link;
};

struct stack {
	intptr_t id;
	struct centre *centre;
	struct stack *below;
	void *children;
	struct stack *root;
	uintptr_t depth;
	uint64_t counts[6];
};

extern char MainCapability[];
#define CCCS ((struct stack *volatile *)(MainCapability + 24 + 864))

static struct centre centre = {.label = "liar", .module = "Main", .source = "<nowhere>"};
static struct centre nameless = {.label = (const char *)~0L, .module = (const char *)8};
static struct stack circle[2] = {
	{.centre = &centre, .below = &circle[1], .depth = 2},
	{.centre = &centre, .below = &circle[0], .depth = 1},
};
static struct stack garbage = {.centre = (struct centre *)0x123456789abcdef1, .depth = 3};
static struct stack unnamed = {.centre = &nameless, .depth = 0};
static struct stack endless[2000];

static void spin(int ms)
{
	struct timespec from, now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	while ((now.tv_sec - from.tv_sec) * 1000 + (now.tv_nsec - from.tv_nsec) / 1000000 < ms);
}

void lie(int which, int ms)
{
	struct stack *const lies[] = {*CCCS, circle, (struct stack *)0x1000, &garbage, &unnamed, endless};
	struct stack *truth = *CCCS;
	for (unsigned i = 0; i < 2000; i++)
		endless[i] = (struct stack){.centre = &centre, .below = i < 1999 ? &endless[i + 1] : 0, .depth = 2000 - i};
	*CCCS = lies[which];
	spin(ms);
	*CCCS = truth;
}
