//go:build unix && !clientonly

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"codeq/internal/keeper"
)

// report is one thing that has happened to a program.
type report struct {
	Kind  keeper.Kind
	Value uint32
}

// keptProgram is a program under its keeper. The goroutine of its delivery owns it.
type keptProgram struct {
	// Reports must be read up to Gone, which is the last.
	Reports chan report
	cmd     *exec.Cmd
	orders  *os.File
}

// self is the path of the executable of this process. On Linux it is right even after the
// file was replaced.
func self() (string, error) {
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		return running, nil
	}
	return os.Executable()
}

// startKept starts a keeper for the program of cmd and returns; reports say whether the
// program runs. The path of cmd is not searched for, and its arguments come without the name
// of the program. After an error nothing runs.
func startKept(cmd *exec.Cmd) (*keptProgram, error) {
	path, err := self()
	if err != nil {
		return nil, fmt.Errorf("find the own executable: %w", err)
	}
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer theirOrders.Close()
	reports, theirReports, err := os.Pipe()
	if err != nil {
		_ = orders.Close() // nobody has the other end
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer theirReports.Close()
	cmd.Path, cmd.Args = path, append([]string{"codeq", keeper.Role, cmd.Path}, cmd.Args...)
	cmd.ExtraFiles = []*os.File{theirOrders, theirReports}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Once the keeper has ended, Wait does not wait for a process that still holds the input.
	cmd.WaitDelay = time.Millisecond
	if err := cmd.Start(); err != nil {
		_, _ = orders.Close(), reports.Close() // nobody has the other ends
		return nil, err
	}
	k := &keptProgram{Reports: make(chan report), cmd: cmd, orders: orders}
	go k.read(reports)
	return k, nil
}

func (k *keptProgram) read(reports *os.File) {
	defer close(k.Reports)
	part := make([]byte, 5)
	for {
		if _, err := io.ReadFull(reports, part); err != nil {
			break
		}
		k.Reports <- report{keeper.Kind(part[0]), binary.BigEndian.Uint32(part[1:])}
	}
	_ = reports.Close() // it was read to its end
	_ = k.cmd.Wait()    // how it ended is in its state
	status, _ := k.cmd.ProcessState.Sys().(syscall.WaitStatus)
	k.Reports <- report{keeper.Gone, uint32(status)}
}

// term sends the group TERM. The keeper reports Empty when every process of it has ended.
func (k *keptProgram) term() { k.order(keeper.OrderTerm) }

// kill is term with KILL.
func (k *keptProgram) kill() { k.order(keeper.OrderKill) }

// dismiss ends the keeper and not the processes of the group.
func (k *keptProgram) dismiss() {
	k.order(keeper.OrderDismiss)
	_ = k.orders.Close() // nothing was buffered
}

// stopped reports that the keeper is stopped by a signal, where the system can tell.
func (k *keptProgram) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.cmd.Process.Pid))
	end := bytes.LastIndexByte(stat, ')') // of the name, before the state
	return err == nil && bytes.HasPrefix(stat[end+1:], []byte(" T"))
}

// order gives an order, also to a keeper that a signal stopped. The last report of a keeper
// tells that it has ended.
func (k *keptProgram) order(order byte) {
	_ = k.cmd.Process.Signal(syscall.SIGCONT) // it fails for a keeper that has ended
	_, _ = k.orders.Write([]byte{order})      // as above
}
