package server

import "time"

// ticker calls a function once a second, from a goroutine of its own.
type ticker struct{ stop, stopped chan struct{} }

func (t *ticker) start(tick func()) {
	t.stop, t.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(t.stopped)
		each := time.NewTicker(time.Second)
		defer each.Stop()
		for {
			select {
			case <-each.C:
				tick()
			case <-t.stop:
				return
			}
		}
	}()
}

// end returns when the function is called no more.
func (t *ticker) end() {
	close(t.stop)
	<-t.stopped
}
