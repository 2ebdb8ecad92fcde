// Counts pieces of work of thunks, and those that were done before.
#include <stdatomic.h>

#define THUNKS 64
#define PIECES 65536

static atomic_long total, repeated;
static struct {
	_Atomic long id;
	atomic_long done;
	_Atomic long of[PIECES]; // the thunk whose piece was done last
} thunks[THUNKS];

long piece(long thunk, long n, long acc)
{
	long before = atomic_exchange(&thunks[thunk % THUNKS].of[n % PIECES], thunk);
	total++;
	if (before == thunk)
		repeated++;
	if (atomic_exchange(&thunks[thunk % THUNKS].id, thunk) != thunk)
		thunks[thunk % THUNKS].done = 0;
	thunks[thunk % THUNKS].done++;
	return acc + n;
}

long done(long thunk)
{
	return thunks[thunk % THUNKS].id == thunk ? thunks[thunk % THUNKS].done : 0;
}

long again(void) { return repeated; }
long all(void) { return total; }
