// Package code shows a function's machine code with the samples on each instruction.
package code
