//go:build !amd64

package overhead

const probeSite = uintptr(0)

func callProbeSite() {}
func callPlainSite() {}
