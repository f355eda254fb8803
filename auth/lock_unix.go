//go:build unix

package auth

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDirectory holds a directory against others that call it, and waits until it
// does. The end of the process gives it up as well.
func lockDirectory(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	// Closing gives the lock up; nothing was written.
	return func() { _ = d.Close() }, nil
}
