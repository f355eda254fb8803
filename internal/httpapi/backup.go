package httpapi

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"

	"codeq/internal/auth"
	"codeq/store"
	"codeq/wire"
)

// backupBusySeconds is the advice to a client while another backup is being made.
const backupBusySeconds = 10

// backups is the path of backups, which every node of a cluster makes of what it has.
func (a *api) backups() resource {
	return resource{base + "/admin/backup", []verb{{method: http.MethodGet, scope: auth.ScopeAdminAll, noHead: true, handle: a.getBackup}}}
}

// getBackup streams the data directory as it is at this moment, as a tar archive whose last
// file is the manifest. The server works on meanwhile.
func (a *api) getBackup(c *call) answer {
	checkpoint, err := a.o.Store.Checkpoint()
	if errors.Is(err, store.ErrCheckpointBusy) {
		refusal := wire.Refuse(wire.CodeOverloaded, "another backup is being made; there is one at a time")
		refusal.RetryAfterSeconds = backupBusySeconds
		return refuse(refusal)
	}
	if err != nil {
		a.o.Log.Error().Err(err).Msg("backup failed")
		return refuse(internalError)
	}
	c.w.Header().Set("Content-Type", "application/x-tar")
	err = writeArchive(c.w, checkpoint)
	if err == nil {
		if noted := checkpoint.Delivered(); noted != nil {
			a.o.Log.Warn().Err(noted).Msg("the backup is whole, but the time of it could not be noted")
		}
	}
	err = errors.Join(err, checkpoint.Close())
	if err != nil {
		a.o.Log.Warn().Str("requestId", c.requestID).Err(err).Msg("backup broke off")
		return answer{status: http.StatusOK, abort: true}
	}
	return answer{status: http.StatusOK, handedOver: true}
}

func writeArchive(w io.Writer, checkpoint *store.Checkpoint) error {
	archive := tar.NewWriter(w)
	err := checkpoint.Each(func(name string, sizeBytes int64, content io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Size: sizeBytes, Mode: 0o600}); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		if _, err := io.Copy(archive, content); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return nil
}
