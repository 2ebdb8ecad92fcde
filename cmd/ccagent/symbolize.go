package main

import (
	"errors"
	"fmt"
	"os/signal"
	"time"

	"ccagent/agent/config"
	"ccagent/agent/resymbolize"

	"github.com/spf13/cobra"
)

func symbolizeCommand() *cobra.Command {
	var (
		opts    resymbolize.Options
		noEmbed bool
		memory  string
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
	fs.StringArrayVar(&opts.SourceDirs, "source-dir", nil, "look for sources in `DIR` too (may be repeated)")
	fs.StringArrayVar(&opts.CoreDirs, "core-dir", nil, "look for Core dumps (*.dump-simpl) in `DIR` too (may be repeated)")
	fs.StringVar(&opts.Root, "root", "", "look for the program's files below `DIR` first: the root directory that it had in a container")
	fs.BoolVar(&noEmbed, "no-embed-source", false, "leave the text of source files out of the log")
	fs.StringVar(&memory, "symbolize-memory", "512MB", "memory `SIZE` that finding names may take")
	fs.StringVar(&opts.User, "user", "", "act as user `NAME` instead of the invoking one")
	fs.DurationVar(&opts.Time, "symbolize-time", 2*time.Minute, "time `D` that finding names may take")
	return cmd
}
