package ui

import (
	"reflect"
	"sync"
	"time"
	"unsafe"

	tea "charm.land/bubbletea/v2"
)

// framesPerSecond is how often the terminal is brought up to date while something happens.
const framesPerSecond = 60

// quietAfter is how long after the last message the program stops to look for something to draw. It
// is far more than passes between a message and the frame that it leads to.
const quietAfter = time.Second

// idle stops the ticks by which Bubble Tea brings the terminal up to date while nothing happens: a
// viewer that is left alone would else wake framesPerSecond times a second for nothing. The library has no
// option for that, so its ticker is taken from it; where a later version has none of that name it ticks on.
type idle struct {
	program *tea.Program

	mu      sync.Mutex
	ticker  *time.Ticker // nil until the program runs
	stop    *time.Timer
	last    time.Time // of wake
	stopped bool
}

// wake is called with each frame that is to be drawn, by the program's event loop.
func (i *idle) wake() {
	if i.program == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ticker == nil {
		if i.ticker = tickerOf(i.program); i.ticker == nil {
			return
		}
		i.stop = time.AfterFunc(quietAfter, i.rest)
	}
	i.last = time.Now()
	if i.stopped {
		i.ticker.Reset(time.Second / framesPerSecond)
		i.stop.Reset(quietAfter)
		i.stopped = false
	}
}

// rest stops the ticks if there was nothing to draw of late.
func (i *idle) rest() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if left := quietAfter - time.Since(i.last); left > 0 {
		i.stop.Reset(left)
		return
	}
	i.ticker.Stop()
	i.stopped = true
}

// tickerOf is the ticker of a program that runs, nil if it has none.
func tickerOf(p *tea.Program) *time.Ticker {
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return *(**time.Ticker)(unsafe.Pointer(field.UnsafeAddr()))
}
