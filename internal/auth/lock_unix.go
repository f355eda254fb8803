//go:build unix

package auth

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockDirectory waits for the lock of a directory, which only callers of this function
// take. The system releases the lock at the end of the process. unlock also makes the names
// in the directory durable.
func lockDirectory(dir string) (unlock func() error, err error) {
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
	return func() error { return errors.Join(d.Sync(), d.Close()) }, nil
}
