module ccagent

require github.com/klauspost/compress v1.20.3

go 1.26.0

require (
	github.com/cilium/ebpf v0.22.0
	github.com/elastic/go-perf v0.0.0-20260224073651-af0ee0c731b7
	golang.org/x/sys v0.49.0
)

tool github.com/cilium/ebpf/cmd/bpf2go
