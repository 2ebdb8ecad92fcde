package overhead

// A trapSite is code of this process for a probe: probed begins with the instruction at address, and plain executes the same
// without a probe.
type trapSite struct {
	address       uintptr
	probed, plain func()
}

var trapSites = [trapKinds]trapSite{
	emulatedTrap: {probeSiteAddress(), callProbeSite, callPlainSite},
	steppedTrap:  {steppedSiteAddress(), callSteppedSite, callPlainSteppedSite},
}

// callProbeSite begins with an instruction that the kernel emulates as
// it does those at the probes in run-time systems.
func callProbeSite()
func callPlainSite()
func probeSiteAddress() uintptr

// callSteppedSite begins with an instruction that the kernel does not emulate.
func callSteppedSite()
func callPlainSteppedSite()
func steppedSiteAddress() uintptr
