/* usage: host LIBRARY ROUNDS: loads the library, starts its run-time system, and has it work. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void *lib = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	if (lib == NULL) {
		fprintf(stderr, "load the library: %s\n", dlerror());
		return 1;
	}
	void (*init)(int *, char ***) = (void (*)(int *, char ***))dlsym(lib, "hs_init");
	long (*busy)(long) = (long (*)(long))dlsym(lib, "busy");
	if (init == NULL || busy == NULL)
		return 1;
	init(NULL, NULL);
	printf("started\n");
	fflush(stdout);
	long sum = 0;
	for (long i = 0; i < atol(argv[2]); i++)
		sum += busy(3000000 + i);
	printf("%ld\n", sum);
	return 0;
}
