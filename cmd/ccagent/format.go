package main

import (
	"fmt"
	"io"

	"ccagent/internal/printable"

	"github.com/spf13/cobra"
)

// formatFlag adds the flag --format to a command.
func formatFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVar(format, "format", "text", "text or json")
}

// checkFormat returns an error if the value of --format is neither text nor json.
func checkFormat(format string) error {
	if format != "text" && format != "json" {
		return fmt.Errorf("--format %q is neither text nor json", format)
	}
	return nil
}

// printAs prints a document as JSON, or its text, as --format asks.
func printAs(cmd *cobra.Command, format string, doc any, text func(io.Writer) error) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	if format == "json" {
		return printable.JSON(cmd.OutOrStdout(), doc, "  ")
	}
	return text(cmd.OutOrStdout())
}
