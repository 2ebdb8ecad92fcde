package overhead

// callProbeSite executes the instruction at probeSite, which the kernel emulates as
// it does those at the probes in run-time systems.
func callProbeSite()

func probeSiteAddress() uintptr

var probeSite = probeSiteAddress()
