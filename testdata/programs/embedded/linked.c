/* usage: linked ROUNDS: starts the run-time system that is linked in, with the options in GHCRTS, has it churn, and ends it. */
#include <stdio.h>
#include <stdlib.h>
#include "Rts.h"

extern HsInt churn(HsInt);

int main(int argc, char **argv)
{
	RtsConfig config = defaultRtsConfig;
	config.rts_opts_enabled = RtsOptsAll;
	hs_init_ghc(&argc, &argv, config);
	printf("started\n");
	fflush(stdout);
	long sum = 0;
	for (long i = 0; argc > 1 && i < atol(argv[1]); i++)
		sum += churn(100000);
	printf("%ld\n", sum);
	hs_exit();
	return 0;
}
