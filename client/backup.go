package client

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// manifestFile is the last file of a backup.
const manifestFile = "codeq.json"

// errCutShort ends a backup whose connection was lost.
var errCutShort = errors.New("the backup broke off before its end")

// Backup reads all data of the server as it is at one moment; the server goes on
// meanwhile. It calls write for each file with its path in the data directory, with "/"
// between the parts, its size in bytes and its content. The manifest comes last. Only a
// nil error means that everything came. The token needs the scope codeq:admin:all. Backup has
// no time limit of its own; ctx bounds it.
func (c *Client) Backup(ctx context.Context, write func(name string, sizeBytes int64, content io.Reader) error) error {
	response, err := c.open(ctx, call{method: http.MethodGet, path: apiPath + "/admin/backup"})
	if err != nil {
		return err
	}
	defer func() {
		_ = response.Body.Close() // what was needed has been read
	}()
	return readArchive(response.Body, write)
}

func readArchive(from io.Reader, write func(name string, sizeBytes int64, content io.Reader) error) error {
	archive := tar.NewReader(from)
	last := ""
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && last == manifestFile {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return errCutShort
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errCutShort, err)
		}
		last = header.Name
		if err := write(header.Name, header.Size, archive); err != nil {
			return err
		}
	}
}
