// Package cluster tests the manifests of deploy/ with Kubernetes's own code: it reads them as the API server does, sets
// defaults, and validates. It is a module of its own, so that the product's go.mod does not have Kubernetes in it.
package cluster
