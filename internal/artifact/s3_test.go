package artifact

import (
	"errors"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// openBucket is a bucket of a storage in this process, and its address.
func openBucket(t *testing.T) (address string) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("files"); err != nil {
		t.Fatal(err)
	}
	storage := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(storage.Close)
	return "s3://files/some/where?region=eu-central-1&endpoint=" + url.QueryEscape(storage.URL)
}

func TestS3(t *testing.T) {
	at := openBucket(t)
	s, err := OpenS3(at, "id", Keys{Access: "a", Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	exercise(t, s)
	other, err := OpenS3(at, "other", Keys{Access: "a", Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if files, err := other.Files(taskID(t, 1)); len(files) > 0 || err != nil {
		t.Errorf("another database sees %v, %v", files, err)
	}
}

// Exactly a part, one byte more, and an upload that a process has left under way.
func TestS3Parts(t *testing.T) {
	at := openBucket(t)
	s, err := OpenS3(at, "id", Keys{Access: "a", Secret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for file, size := range map[string]int{"1.1": partBytes, "1.2": partBytes + 1, "1.3": 2 * partBytes} {
		content := strings.Repeat("x", size)
		if err := s.Put(Key{taskID(t, 1), file}, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, s, Key{taskID(t, 1), file}); got != content {
			t.Errorf("%d bytes came back as %d", size, len(got))
		}
	}
	cut := &halfway{r: strings.NewReader(strings.Repeat("x", 2*partBytes)), at: 2 * partBytes, do: func() {
		if s, err = OpenS3(at, "id", Keys{Access: "a", Secret: "s"}); err != nil { // as a start does
			t.Error(err)
		}
	}}
	if err := s.Put(Key{taskID(t, 1), "1.4"}, cut); err == nil {
		t.Error("an upload that a start has ended succeeds")
	}
	if _, err := s.Open(Key{taskID(t, 1), "1.4"}); !errors.Is(err, ErrGone) {
		t.Errorf("its file: %v", err)
	}
	var none io.ReadSeekCloser
	for _, bad := range []string{"", "files", "s3://", "https://files/x", "s3://u:p@files", "s3://files?regio=x"} {
		if _, err := OpenS3(bad, "id", Keys{}); err == nil {
			t.Errorf("%q is taken, %v", bad, none)
		}
	}
}
