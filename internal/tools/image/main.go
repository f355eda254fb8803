package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the number that the program runs as; nobody else has it.
const user = 65532

// source is what an image is made of.
type source struct {
	root, version, commit string
	time                  time.Time
}

func main() {
	var s source
	flag.StringVar(&s.root, "root", ".", "root of the sources")
	flag.StringVar(&s.version, "version", "", "version, such as 0.1.0")
	flag.StringVar(&s.commit, "commit", "", "commit of the sources")
	seconds := flag.Int64("time", 0, "time of the commit, in Unix seconds")
	only := flag.String("only", "", "one system instead of both, such as linux/amd64")
	out := flag.String("out", "bin/image", "directory for the layout; it is emptied")
	unpack := flag.String("unpack", "", "directory for the files of the image for this machine")
	flag.Parse()
	s.time = time.Unix(*seconds, 0).UTC()
	systems := []string{"linux/amd64", "linux/arm64"}
	if *only != "" {
		systems = []string{*only}
	}
	if err := s.make(systems, *out, *unpack); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func (s *source) make(systems []string, out, unpack string) error {
	if s.version == "" || s.commit == "" {
		return errors.New("-version and -commit are needed")
	}
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, system := range systems {
		program, err := s.build(system)
		if err != nil {
			return err
		}
		image, err := s.image(system, program)
		if err != nil {
			return err
		}
		arch := strings.TrimPrefix(system, "linux/")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		if unpack != "" && arch == runtime.GOARCH {
			if err := unpackTo(unpack, image); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if _, err := layout.Write(out, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err == nil {
		fmt.Println(digest)
	}
	return err
}

func (s *source) build(system string) ([]byte, error) {
	goos, arch, _ := strings.Cut(system, "/")
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", s.version, s.commit), "-o", filepath.Join(dir, "codeq"), "./cmd/codeq")
	cmd.Dir = s.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", system, err, out)
	}
	return os.ReadFile(filepath.Join(dir, "codeq"))
}

// image is the program with what it needs, in one layer.
func (s *source) image(system string, program []byte) (v1.Image, error) {
	files, err := s.files(program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, s.config(system, image))
}

// config says how the program is started. The health command asks the address that the server
// has by default, from within.
func (s *source) config(system string, image v1.Image) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic("the empty image has no configuration: " + err.Error())
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, _ = strings.Cut(system, "/")
	c.Created = v1.Time{Time: s.time}
	c.History = nil
	c.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), Entrypoint: []string{"/codeq"}, Cmd: []string{"serve"}, StopSignal: "SIGTERM",
		Env:          []string{"CODEQ_DATA=/var/lib/codeq", "CODEQ_LISTEN=0.0.0.0:8080"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}}, Volumes: map[string]struct{}{"/var/lib/codeq": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/codeq", "health"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title": "codeq", "org.opencontainers.image.licenses": "MIT",
			"org.opencontainers.image.version": s.version, "org.opencontainers.image.revision": s.commit,
		},
	}
	return c
}

// files is the layer, as tar.
func (s *source) files(program []byte) ([]byte, error) {
	var b bytes.Buffer
	to := tar.NewWriter(&b)
	add := func(h *tar.Header, content []byte) error {
		h.ModTime, h.Size, h.Format = s.time, int64(len(content)), tar.FormatUSTAR
		if err := to.WriteHeader(h); err != nil {
			return err
		}
		_, err := to.Write(content)
		return err
	}
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	folder := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755} }
	data := folder("var/lib/codeq/")
	data.Mode, data.Uid, data.Gid = 0o700, user, user
	err := add(&tar.Header{Typeflag: tar.TypeReg, Name: "codeq", Mode: 0o755}, program)
	for _, name := range []string{"etc/", "etc/ssl/", "etc/ssl/certs/", "var/", "var/lib/"} {
		err = errors.Join(err, add(folder(name), nil))
	}
	err = errors.Join(err, add(data, nil),
		add(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, roots.Bytes()), to.Close())
	return b.Bytes(), err
}

// unpackTo writes the files of an image into a directory, which must not exist.
func unpackTo(dir string, image v1.Image) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	from := mutate.Extract(image)
	defer from.Close()
	for files := tar.NewReader(from); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			err = root.Mkdir(strings.TrimSuffix(h.Name, "/"), h.FileInfo().Mode().Perm())
		} else {
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = root.WriteFile(h.Name, content, h.FileInfo().Mode().Perm())
			}
		}
		if err != nil {
			return err
		}
	}
}
