package main

import (
	"errors"
	"fmt"
	"os/signal"
	"time"

	"ccagent/agent/config"
	"ccagent/agent/resymbolize"
	"ccagent/symbolize/debuginfod"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func symbolizeCommand() *cobra.Command {
	var (
		opts    resymbolize.Options
		noEmbed bool
		memory  string
		servers []string
	)
	cmd := &cobra.Command{
		Use:   "symbolize FILE",
		Short: "give a log its names again, or for the first time if its capture was cut off",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("symbolize: name one log: ccagent symbolize FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if opts.Memory, err = config.ParseSize(memory); err != nil {
				return fmt.Errorf("--symbolize-memory: %w", err)
			}
			if opts.Debuginfod, err = debuginfod.Parse(servers); err != nil {
				return fmt.Errorf("--debuginfod: %w", err)
			}
			opts.EmbedSource = !noEmbed
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals...)
			defer stop()
			attended.Store(true)
			sum, err := resymbolize.Run(ctx, args[0], opts)
			if err != nil {
				return fmt.Errorf("symbolize %s: %w", args[0], err)
			}
			for _, p := range sum.Problems {
				say("%s", p)
			}
			say("%s: %d of %d addresses resolved", args[0], sum.Resolved, sum.Addresses)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&opts.DebugFiles, "debug-file", nil, "take debug information from `FILE`: a separate debug file, or the binary before it was stripped (may be repeated)")
	registerDebuginfod(fs, &servers)
	fs.StringArrayVar(&opts.SourceDirs, "source-dir", nil, "look for sources in `DIR` too (may be repeated)")
	fs.StringArrayVar(&opts.CoreDirs, "core-dir", nil, "look for Core dumps (*.dump-simpl) in `DIR` too (may be repeated)")
	fs.StringVar(&opts.Root, "root", "", "look for the program's files below `DIR` first: the root directory that it had in a container")
	fs.BoolVar(&noEmbed, "no-embed-source", false, "leave the text of source files out of the log")
	fs.StringVar(&memory, "symbolize-memory", "512MB", "memory `SIZE` that finding names may take")
	fs.StringVar(&opts.User, "user", "", "act as user `NAME` instead of the invoking one")
	fs.DurationVar(&opts.Time, "symbolize-time", 2*time.Minute, "time `D` that finding names may take")
	return cmd
}

// registerDebuginfod adds the flag by which servers are asked for debug files.
func registerDebuginfod(fs *pflag.FlagSet, servers *[]string) {
	fs.StringArrayVar(servers, "debuginfod", nil, "ask the debuginfod server at `URL` for debug files that are not on this machine; it learns which programs run here (may be repeated; DEBUGINFOD_URLS is not looked at)")
}
