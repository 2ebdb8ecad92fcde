package main

import (
	"fmt"
	"runtime"

	"ccagent/internal/buildinfo"

	"github.com/spf13/cobra"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "print the version, the build, and what is needed of the kernel",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "ccagent %s\nbuilt with %s for %s/%s\nneeds Linux 5.17 or newer with BPF, BTF and perf events, and root or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE\n",
				buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
