package main

import (
	"github.com/spf13/cobra"
)

// tui shows a log in the terminal.
func (v *view) tui(c *cobra.Command, path string) error { return v.hot(c, path) }
