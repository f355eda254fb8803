package scale

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"codeq/client"
	"codeq/test/blackbox"
	"codeq/wire"
)

var artifactBytes = flag.Int64("scale.artifact", 96<<20, "size of the artifact that is uploaded and got, in bytes")

// artifactGrows bounds by how much the server may grow while a file of any size passes.
const artifactGrows = 48 << 20

// TestArtifactStreamsInFlatMemory uploads one file and gets it, and looks at the memory of the
// server meanwhile.
func TestArtifactStreamsInFlatMemory(t *testing.T) {
	s := blackbox.Serve(t)
	api := blackbox.NewAPI(s.Addr)
	defer api.Close()
	c, err := client.New(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	small := passFile(t, api, c, 1<<20)
	before := s.ResidentBytes()
	largest, over := make(chan int64), make(chan struct{})
	go func() {
		most := before
		for {
			select {
			case <-over:
				largest <- most
				return
			case <-time.After(20 * time.Millisecond):
				most = max(most, s.ResidentBytes())
			}
		}
	}()
	large := passFile(t, api, c, *artifactBytes)
	close(over)
	grew := <-largest - before
	t.Logf("%d MiB: up in %.1f s (%.0f MiB/s), down in %.1f s (%.0f MiB/s), server %d MiB, grew by %d MiB at most (1 MiB: %v up, %v down)",
		*artifactBytes>>20, large.up.Seconds(), float64(*artifactBytes>>20)/large.up.Seconds(), large.down.Seconds(),
		float64(*artifactBytes>>20)/large.down.Seconds(), before>>20, grew>>20, small.up.Round(time.Millisecond), small.down.Round(time.Millisecond))
	if grew > artifactGrows {
		t.Errorf("the server grew by %d bytes, want at most %d", grew, artifactGrows)
	}
}

type passed struct{ up, down time.Duration }

// passFile uploads a file of that size, ends its task with it, and gets it back.
func passFile(t *testing.T, api *blackbox.API, c *client.Client, size int64) (took passed) {
	t.Helper()
	a := asker{t, api}
	a.do(http.MethodPost, "/tasks", `{"command":"large","payload":1}`, nil)
	var held struct{ ID, LeaseToken string }
	a.do(http.MethodPost, "/tasks/claim", `{"commands":["large"],"leaseSeconds":3600,"waitSeconds":10}`, &held)
	id, _ := wire.ParseTaskID(held.ID)
	token, ok := wire.ParseToken(held.LeaseToken)
	if !ok {
		t.Fatalf("claimed %+v", held)
	}
	content := &chance{size: size}
	began := time.Now()
	file, err := c.Upload(context.Background(), wire.TaskRef{TaskID: id, Token: token}, &client.File{Name: "large", Content: content, SizeBytes: size})
	took.up = time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	if sum := hex.EncodeToString(content.sum.Sum(nil)); file.SHA256 != sum || file.SizeBytes != size {
		t.Fatalf("uploaded %+v, want %d bytes of %s", file, size, sum)
	}
	a.do(http.MethodPost, fmt.Sprintf("/tasks/%s/result", held.ID), `{"result":{},"artifacts":[{"name":"large"}]}`, new(json.RawMessage))
	began = time.Now()
	from, err := c.Artifact(context.Background(), id, "large")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, from)
	took.down = time.Since(began)
	if err != nil || n != size || hex.EncodeToString(sum.Sum(nil)) != file.SHA256 {
		t.Fatalf("%d bytes came back, %v", n, err)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
	return took
}

// chance is a file of random bytes that is nowhere.
type chance struct {
	size, at int64
	source   *rand.ChaCha8
	sum      hash.Hash
}

// Read implements io.Reader.
func (c *chance) Read(p []byte) (int, error) {
	if c.at >= c.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), c.size-c.at)]
	_, _ = c.source.Read(p) // documented never to fail
	_, _ = c.sum.Write(p)   // the same
	c.at += int64(len(p))
	return len(p), nil
}

// Seek implements io.Seeker, to the begin alone.
func (c *chance) Seek(int64, int) (int64, error) {
	c.at, c.source, c.sum = 0, rand.NewChaCha8([32]byte{1}), sha256.New()
	return 0, nil
}
