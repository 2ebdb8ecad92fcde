package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of this source; builds add the revision they know.
const release = "0.1.0"

func version() string {
	v := release
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				v += "+" + s.Value[:12]
			}
		}
	}
	return v
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version, the build, and what is needed of the kernel",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "ccagent %s\nbuilt with %s for %s/%s\nneeds Linux 5.17 or newer with BPF, BTF and perf events, and root or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
