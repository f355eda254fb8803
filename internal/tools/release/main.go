package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// systems are those that a release has, as GOOS/GOARCH.
var systems = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// release is one run of the tool.
type release struct {
	root, out       string
	version, commit string
	time            time.Time // of the commit, and so of all files
	texts           []file    // that are the same for every system
	sums            []string
}

// file is one file of an archive.
type file struct {
	name  string
	mode  int64
	bytes []byte
}

func main() {
	r := &release{}
	flag.StringVar(&r.root, "root", ".", "root of the sources")
	flag.StringVar(&r.out, "out", "bin/release", "directory for what is made; it is emptied")
	flag.StringVar(&r.version, "version", "", "version, such as 0.1.0")
	flag.StringVar(&r.commit, "commit", "", "commit of the sources")
	seconds := flag.Int64("time", 0, "time of the commit, in Unix seconds")
	only := flag.String("only", "", "one system instead of all, such as linux/amd64")
	flag.Parse()
	r.time = time.Unix(*seconds, 0).UTC()
	wanted := systems
	if *only != "" {
		wanted = []string{*only}
	}
	if err := r.make(wanted); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) make(systems []string) error {
	if r.version == "" || r.commit == "" {
		return errors.New("-version and -commit are needed")
	}
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	if err := r.write(); err != nil {
		return err
	}
	for _, system := range systems {
		if err := r.pack(system); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
	}
	slices.Sort(r.sums)
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(strings.Join(r.sums, "")), 0o644)
}

// write makes the manual and the completions, by the program for this machine.
func (r *release) write() error {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "codeq")
	if err := r.build(runtime.GOOS+"/"+runtime.GOARCH, program); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"codeq.1": {"help", "man"}, "completion/codeq.bash": {"completion", "bash"},
		"completion/_codeq": {"completion", "zsh"}, "completion/codeq.fish": {"completion", "fish"},
	} {
		out, err := exec.Command(program, args...).Output()
		if err != nil {
			return fmt.Errorf("codeq %s: %w", strings.Join(args, " "), err)
		}
		r.texts = append(r.texts, file{name, 0o644, out})
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "deploy/systemd/codeq.service"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		r.texts = append(r.texts, file{filepath.Base(name), 0o644, text})
	}
	return nil
}

// build compiles the program for a system.
func (r *release) build(system, to string) error {
	goos, arch, _ := strings.Cut(system, "/")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", r.version, r.commit), "-o", to, "./cmd/codeq")
	cmd.Dir = r.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOFLAGS=-mod=readonly", "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// pack makes the archive of a system and the bill of materials beside it.
func (r *release) pack(system string) error {
	name := fmt.Sprintf("codeq_%s_%s", r.version, strings.ReplaceAll(system, "/", "_"))
	program, isWindows := "codeq", strings.HasPrefix(system, "windows/")
	if isWindows {
		program = "codeq.exe"
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := r.build(system, filepath.Join(dir, program)); err != nil {
		return err
	}
	built, err := os.ReadFile(filepath.Join(dir, program))
	if err != nil {
		return err
	}
	bill, err := r.bill(filepath.Join(dir, program), system, built)
	if err != nil {
		return err
	}
	files := append([]file{{program, 0o755, built}, {"codeq.cdx.json", 0o644, bill}}, r.texts...)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	write, end := tarred, ".tar.gz"
	if isWindows {
		write, end = zipped, ".zip"
	}
	var archive bytes.Buffer
	if err := write(&archive, name, files, r.time); err != nil {
		return err
	}
	return errors.Join(r.save(name+end, archive.Bytes()), r.save(name+".cdx.json", bill))
}

func (r *release) save(name string, content []byte) error {
	r.sums = append(r.sums, fmt.Sprintf("%x  %s\n", sha256.Sum256(content), name))
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}
