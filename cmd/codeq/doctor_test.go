package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killedServer is the directory of a server that was killed when it had
// acknowledged so many tasks.
func killedServer(t *testing.T, tasks int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	p, said := serve(t, dir, "127.0.0.1:0")
	for range tasks {
		if code, _, errs := command(t, said.URL, "enqueue", "c", `{"n":1}`); code != exitFine {
			t.Fatalf("exit code %d, errors %q", code, errs)
		}
	}
	p.kill()
	return dir
}

// newestLog is the log with the highest number.
func newestLog(t *testing.T, dir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "db", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("no log: %v", err)
	}
	return logs[len(logs)-1]
}

// flipBit changes one bit of a file where the text stands for the last time.
func flipBit(t *testing.T, file, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(data), text)
	if at < 0 {
		t.Fatalf("no %s in %s", text, file)
	}
	data[at] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestX1OneFlippedBitAfterAKillIsRefusedUntilItsLossIsAccepted(t *testing.T) {
	dir := killedServer(t, 3)
	log := newestLog(t, dir)
	flipBit(t, log, `{"n":1}`)
	name := "db/" + filepath.Base(log)
	for _, args := range [][]string{{"doctor", dir}, {"serve", "--data", dir, "--listen", "127.0.0.1:0"}} {
		code, _, errs := command(t, "http://127.0.0.1:1", args...)
		has(t, errs, log+": the file is damaged", "restore the directory from a backup", "codeq doctor "+dir+" --accept-loss "+name)
		if code != exitFailed {
			t.Errorf("%s: exit code %d", args[0], code)
		}
	}
	code, _, errs := command(t, "http://127.0.0.1:1", "doctor", dir, "--accept-loss", name)
	has(t, errs, log+" is cut at byte", "is given up", dir+" is in order")
	if code != exitFine {
		t.Errorf("exit code %d", code)
	}
	_, again := serve(t, dir, "127.0.0.1:0")
	if _, out, _ := command(t, again.URL, "queues", "--json"); !strings.Contains(out, `"ready":2`) {
		t.Errorf("the queues are %s", out)
	}
}

func TestX2DoctorNamesADamagedTable(t *testing.T) {
	dir := killedServer(t, 1)
	tables, err := filepath.Glob(filepath.Join(dir, "db", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no table: %v", err)
	}
	flipBit(t, tables[0], "creation")
	for _, args := range [][]string{{"doctor", dir}, {"doctor", dir, "--rebuild-counters"}, {"serve", "--data", dir, "--listen", "127.0.0.1:0"}} {
		code, _, errs := command(t, "http://127.0.0.1:1", args...)
		has(t, errs, tables[0]+": the file is damaged", "restore the directory from a backup")
		if code != exitFailed {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

// A user who may only read, and as root does not own it, examines a directory all the
// same.
func TestN22DoctorWantsNoMoreThanTheRightToRead(t *testing.T) {
	dir := killedServer(t, 2)
	top := filepath.Dir(filepath.Dir(dir))
	program := filepath.Join(t.TempDir(), "codeq")
	data, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	mode := func(file, dir os.FileMode) error {
		return filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				return os.Chmod(path, dir)
			}
			return os.Chmod(path, file)
		})
	}
	if err := mode(0o555, 0o555); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := mode(0o700, 0o700); err != nil {
			t.Error(err)
		}
	}()
	cmd := exec.Command(program, "doctor", dir)
	cmd.Env, cmd.Dir, cmd.WaitDelay = append(os.Environ(), asCodeq+"=1"), "/", time.Minute
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if said, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(said), "is in order") {
		t.Errorf("%v: %s", err, said)
	}
}

// What the doctor prints of a directory is for a person at 3 a.m.: every record of a
// task, under the names of its fields, and nothing that must stay secret.
func TestDoctorPrintsTheRecordsOfOneTaskOrAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p, said := serve(t, dir, "127.0.0.1:0")
	var ids []string
	for _, key := range []string{"a", "b"} {
		code, out, errs := command(t, said.URL, "enqueue", "mails", `{"to":"ann"}`, "--key", key, "-q")
		if code != exitFine {
			t.Fatalf("exit code %d, errors %q", code, errs)
		}
		ids = append(ids, strings.TrimSpace(out))
	}
	p.kill()
	_, all, _ := command(t, "http://127.0.0.1:1", "doctor", dir, "--dump")
	has(t, all, "tasks/"+ids[0], "tasks/"+ids[1], "mails/default pending/p0/", "mails/default stats {\"ready\":[2]", "meta/marks {")
	if strings.Contains(all, "creation") {
		t.Errorf("the dump has the key with the secret:\n%s", all)
	}
	code, one, errs := command(t, "http://127.0.0.1:1", "doctor", dir, ids[0], "--dump")
	has(t, one, `"id":"`+ids[0]+`"`, `"status":"PENDING"`, `{"to":"ann"}`, "key/a "+ids[0])
	if code != exitFine || strings.Contains(one, ids[1]) {
		t.Errorf("exit code %d, errors %q, printed\n%s", code, errs, one)
	}
	code, _, errs = command(t, "http://127.0.0.1:1", "doctor", dir, "01890a5d-ac96-774b-bcce-b302099a8057", "--dump")
	has(t, errs, "has no record of the task 01890a5d")
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	code, _, errs = command(t, "http://127.0.0.1:1", "doctor", dir, ids[0])
	has(t, errs, "--dump")
	if code != exitWrong {
		t.Errorf("exit code %d", code)
	}
}
