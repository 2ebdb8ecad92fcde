// Package collector runs OpenTelemetry's collector, of internal/engines, for measurements.
package collector

import (
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// Collector is a running one, which ends with this process.
type Collector struct {
	*exec.Cmd
	Address string // host and port
}

// patience is how long it may take to listen.
const patience = 20 * time.Second

// Start starts the collector and waits until it listens. It writes each request into a file of a folder.
func Start(exe, dir string) (*Collector, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	c := &Collector{exec.Command(exe, address, dir), address}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Cmd.Start(); err != nil {
		return nil, err
	}
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(patience / 1000) {
		if conn, err := net.Dial("tcp", address); err == nil {
			return c, conn.Close()
		}
	}
	c.Kill()
	return nil, fmt.Errorf("%s does not listen", exe)
}

// Kill ends it at once.
func (c *Collector) Kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
}

// FreeAddress is one of this machine that nobody listens at.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
