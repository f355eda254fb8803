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

// errCutShort is what a backup ends with that lost its connection.
var errCutShort = errors.New("the backup broke off before its end")

// Backup reads the whole data of the server as it is at one moment, which goes
// on meanwhile, and calls write for each file: its path in the data directory,
// parts divided by "/", its size in bytes and what is in it. The manifest
// comes last; only a nil error says that everything came. It takes a credential
// with the scope operator, and as long as it takes: ctx bounds it.
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
