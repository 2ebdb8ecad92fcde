/* usage: host LIBRARY ROUNDS [churn]: loads the library, starts its run-time system, and has it work; with churn by allocation,
   and prints how many bytes that were. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void *lib = argc >= 3 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (lib == NULL) {
		fprintf(stderr, "load the library: %s\n", dlerror());
		return 1;
	}
	void (*init)(int *, char ***) = (void (*)(int *, char ***))dlsym(lib, "hs_init");
	long (*work)(long) = (long (*)(long))dlsym(lib, argc > 3 ? "churn" : "busy");
	unsigned long (*allocations)(void) = (unsigned long (*)(void))dlsym(lib, "getAllocations");
	if (init == NULL || work == NULL || allocations == NULL)
		return 1;
	init(NULL, NULL);
	printf("started\n");
	fflush(stdout);
	long sum = 0;
	for (long i = 0; i < atol(argv[2]); i++)
		sum += work(argc > 3 ? 100000 : 3000000 + i);
	printf("%ld\n", sum);
	if (argc > 3)
		printf("allocated %lu\n", allocations());
	return 0;
}
