package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// PanicError reports that a panic of the agent has ended the capture.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a mistake in ccagent has ended the capture, which a program that was started has survived: %v; please report it with these lines:\n%s", e.Value, e.Stack)
}

// panicked is called when the capture has panicked. A program that was started runs
// unobserved, and its end is waited for.
func (c *capture) panicked(ctx context.Context, value any) error {
	err := error(&PanicError{Value: value, Stack: debug.Stack()})
	if c.target != nil && c.target.Started() {
		err = errors.Join(err, c.target.LetGo())
		c.target.ExitStatus(ctx)
	}
	return err
}
