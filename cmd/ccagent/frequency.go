package main

import (
	"errors"
	"strconv"
)

// frequency is a flag's number of samples a second; 0 is auto.
type frequency uint64

// String implements pflag.Value.
func (f *frequency) String() string {
	if *f == 0 {
		return "auto"
	}
	return strconv.FormatUint(uint64(*f), 10)
}

// Type implements pflag.Value.
func (*frequency) Type() string { return "HZ" }

// Set implements pflag.Value.
func (f *frequency) Set(s string) error {
	if s == "auto" {
		*f = 0
		return nil
	}
	hz, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil:
		return errors.New("give samples a second, or auto")
	case hz == 0:
		return errors.New("-F 0 takes no samples; give a frequency above 0, or auto")
	}
	*f = frequency(hz)
	return nil
}
