package overhead

// callProbeSite executes the instruction at probeSite, which the kernel emulates as
// it does those at the probes in run-time systems.
func callProbeSite()

// callPlainSite executes the same code without a probe.
func callPlainSite()

func probeSiteAddress() uintptr

var probeSite = probeSiteAddress()
