//go:build unix

package store

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockToRead holds a lock file against whoever wants to write, without the right
// to write to it.
func lockToRead(name string) (io.Closer, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart})
	if errors.Is(err, unix.EACCES) {
		err = syscall.EAGAIN // the other name for a lock that is held
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
