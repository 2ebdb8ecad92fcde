package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"ccagent/agent/daemon/control"
)

func boostCommand() *cobra.Command {
	var socket string
	r := control.Request{Command: control.CommandBoost, Rate: 997}
	length := 30 * time.Second
	var stop bool
	cmd := &cobra.Command{
		Use:   "boost PID",
		Short: "have the daemon sample a process more often for a while",
		Long: `Have the daemon sample the CPU time of one process more often for a while, beside the
samples that it takes of it anyway. Weights stay true: shares and times of a stretch that is
in part boosted are as right as others, and surer where there are more samples.

The boost ends by itself. It takes no more of the process's CPU time than boost-overhead in
the daemon's configuration allows: the rate is lowered for that. ccagent ps shows it.`,
		Example: `  ccagent boost 4711
  ccagent boost 4711 --rate 487 --for 2m
  ccagent boost 4711 --stop`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("boost: name one process (ccagent ps lists them)")
			}
			pid, err := strconv.ParseUint(args[0], 10, 32)
			if err != nil || pid == 0 {
				return fmt.Errorf("boost: %q is no process id (ccagent ps lists them)", args[0])
			}
			r.PID = uint32(pid)
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			switch {
			case stop:
			case length <= 0:
				return fmt.Errorf("--for %v is no time to come", length)
			default:
				r.For = length.Seconds()
			}
			if _, _, err := ask(socket, r); err != nil {
				return err
			}
			if stop {
				say("process %d is not boosted any more", r.PID)
			} else {
				say("process %d is sampled at up to %d Hz more for %v; ccagent ps shows the rate", r.PID, r.Rate, length)
			}
			return nil
		},
	}
	socketFlag(cmd, &socket)
	fs := cmd.Flags()
	fs.Uint64Var(&r.Rate, "rate", r.Rate, "take `HZ` samples a second of its CPU time more")
	fs.DurationVar(&length, "for", length, "for so long, 1s to 1h")
	fs.BoolVar(&stop, "stop", false, "end the boost of the process now")
	return cmd
}
