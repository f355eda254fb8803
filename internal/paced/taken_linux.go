package paced

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostUnsentBytes is how much the system takes to send before it can.
const mostUnsentBytes = 128 << 10

// bufferLittle has the system take no more than it can soon send: what stands in
// its buffers has been written for us, and is as far away from the other side.
func bufferLittle(conn net.Conn) {
	control(conn, func(fd int) {
		// A system that cannot do so takes more, and nothing else is different.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, mostUnsentBytes)
	})
}

// unacknowledged is how many bytes of a connection the system holds that the other
// side has not acknowledged, 0 if it does not say.
func unacknowledged(conn net.Conn) (bytes int64) {
	control(conn, func(fd int) {
		if n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ); err == nil {
			bytes = int64(n)
		}
	})
	return bytes
}

// control does something with the descriptor of a connection that has one.
func control(conn net.Conn, do func(fd int)) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := c.SyscallConn(); err == nil {
		// A connection that is closed has nothing to be done with.
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}
