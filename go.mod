module ccagent

require github.com/klauspost/compress v1.20.3

go 1.26.0

require github.com/cilium/ebpf v0.22.0

require golang.org/x/sys v0.49.0 // indirect

tool github.com/cilium/ebpf/cmd/bpf2go
