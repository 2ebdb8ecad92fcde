package main

import (
	"context"
	"sync"
	"time"

	"ccagent/internal/sandbox"
)

// idleChild is a confined child that is started when there is work for it, and ended when there was none for a while.
// Its owner's lock guards it.
type idleChild struct {
	child *sandbox.Child // nil while there is none
	ended context.CancelFunc
	idle  *time.Timer
}

// start starts the child, which ends once its timer, idle, is not stopped or reset for a time.
func (c *idleChild) start(lock sync.Locker, config sandbox.Config, patience time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	child, err := sandbox.Start(ctx, config)
	if err != nil {
		cancel()
		return err
	}
	c.child, c.ended = child, cancel
	c.idle = time.AfterFunc(patience, func() {
		lock.Lock()
		defer lock.Unlock()
		if c.child == child {
			_ = c.end()
		}
	})
	return nil
}

// end ends the child, and returns what it says of why it has failed.
func (c *idleChild) end() error {
	if c.child == nil {
		return nil
	}
	child := c.child
	c.child = nil
	c.idle.Stop()
	defer c.ended()
	return endChild(child)
}
