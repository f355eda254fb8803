package keeper

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Role is the first argument of a keeper. Behind it stand the path of the
// program and its arguments.
const Role = "keep-program"

const (
	ordersFd  = 3
	reportsFd = 4
	// orphanFor is how long the group of a dead worker has between TERM and KILL.
	orphanFor = 5 * time.Second
	// groupLook is how often it is looked whether a group that was told to end has.
	groupLook = 20 * time.Millisecond
)

// The orders, one byte each: to send the group TERM, or KILL, and report when it is
// empty, and to go and leave alone who lives.
const (
	OrderTerm    = 't'
	OrderKill    = 'k'
	OrderDismiss = 'q'
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == Role {
		os.Exit(beKeeper(os.Args[2:]))
	}
}

// child is the keeper and its program. The goroutine that runs loop owns it.
type child struct {
	group   int
	reports *os.File
	ended   bool
	// look ticks while the end of the group, which was told to end, is awaited; nil
	// while it is not.
	look *time.Ticker
}

func beKeeper(words []string) int {
	if len(words) == 0 || !isPipe(ordersFd) || !isPipe(reportsFd) {
		// Nobody is left to tell that nobody listens.
		_, _ = os.Stderr.WriteString("codeq: " + Role + " is how codeq work starts its programs; nobody else calls it\n")
		return 2
	}
	syscall.CloseOnExec(ordersFd)
	syscall.CloseOnExec(reportsFd)
	outlive()
	leaveTerminal()
	c := &child{reports: os.NewFile(reportsFd, "reports")}
	c.report(Starting, 0)
	group, err := syscall.ForkExec(words[0], words, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: leader(),
	})
	if err != nil {
		var number syscall.Errno
		_ = errors.As(err, &number) // ForkExec returns nothing else
		c.report(Failed, uint32(number))
		return 0
	}
	c.group = group
	for fd := range 3 {
		_ = syscall.Close(fd) // the program has its own; a reader of it must see when that ends
	}
	c.report(Running, uint32(group))
	return c.loop(readOrders(), awaitProgram(group))
}

func isPipe(fd int) bool {
	var is syscall.Stat_t
	return syscall.Fstat(fd, &is) == nil && is.Mode&syscall.S_IFMT == syscall.S_IFIFO
}

// leaveTerminal gives up the terminal of the session for this process and what it
// starts. A session of their own would do, too; but Linux schedules each session
// as one unit, and on a busy machine a new one waits for its turn longer than a
// short program runs.
func leaveTerminal() {
	terminal, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return // there is none
	}
	_, _, _ = syscall.Syscall(syscall.SYS_IOCTL, uintptr(terminal), syscall.TIOCNOTTY, 0) // it fails for what is no terminal
	_ = syscall.Close(terminal)                                                           // nothing was written
}

// outlive makes the signals that are meant for the worker and its programs, as a
// terminal or systemd sends them to all, end the program alone. What was ignored
// stays so. A program starts with the signals as they were.
func outlive() {
	ignore := make(chan os.Signal, 1)
	for _, s := range []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGPIPE, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU,
	} {
		if !signal.Ignored(s) {
			signal.Notify(ignore, s)
		}
	}
}

// readOrders passes them on until the pipe ends.
func readOrders() <-chan byte {
	orders, file := make(chan byte), os.NewFile(ordersFd, "orders")
	go func() {
		defer close(orders)
		order := make([]byte, 1)
		for {
			if n, err := file.Read(order); n == 0 || err != nil {
				return
			}
			orders <- order[0]
		}
	}()
	return orders
}

// awaitProgram passes on whatever becomes of the program, its end at last.
func awaitProgram(pid int) <-chan syscall.WaitStatus {
	changes := make(chan syscall.WaitStatus)
	go func() {
		for {
			var status syscall.WaitStatus
			_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED|syscall.WCONTINUED, nil)
			if err != nil && errors.Is(err, syscall.EINTR) {
				continue
			}
			changes <- status
			if err != nil || status.Exited() || status.Signaled() {
				return
			}
		}
	}()
	return changes
}

// loop ends when it is dismissed, or when nobody is left of the group of a
// worker that has died.
func (c *child) loop(orders <-chan byte, changes <-chan syscall.WaitStatus) int {
	var orphaned <-chan time.Time
	for {
		select {
		case order, ok := <-orders:
			switch {
			case !ok:
				orders, orphaned = nil, time.After(orphanFor)
				c.end(syscall.SIGTERM)
			case order == OrderTerm:
				c.end(syscall.SIGTERM)
			case order == OrderKill:
				c.end(syscall.SIGKILL)
			default:
				return 0
			}
		case status := <-changes:
			c.changed(status)
		case <-orphaned:
			c.end(syscall.SIGKILL)
			return 0
		case <-c.looks():
			if !c.ended || c.groupLives() {
				continue
			}
			if orders == nil {
				return 0
			}
			c.look.Stop()
			c.look = nil
			c.report(Empty, 0)
		}
	}
}

func (c *child) looks() <-chan time.Time {
	if c.look == nil {
		return nil
	}
	return c.look.C
}

func (c *child) groupLives() bool { return syscall.Kill(-c.group, 0) == nil }

// end sends the group a signal, and wakes who is stopped, or would not see it.
func (c *child) end(s syscall.Signal) {
	if c.look == nil {
		c.look = time.NewTicker(groupLook)
	}
	// They fail only when nobody of the group is left, which is what is wanted.
	_ = syscall.Kill(-c.group, s)
	_ = syscall.Kill(-c.group, syscall.SIGCONT)
}

func (c *child) changed(status syscall.WaitStatus) {
	switch {
	case status.Stopped():
		c.report(Stopped, uint32(status.StopSignal()))
	case status.Continued():
		c.report(Continued, 0)
	default:
		c.ended = true
		c.report(Ended, uint32(status))
	}
}

func (c *child) report(kind Kind, value uint32) {
	// It cannot fail but when the worker has died, which the orders tell.
	_, _ = c.reports.Write([]byte{byte(kind), byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)})
}
