package main

import (
	"encoding/json"
	"fmt"
	"time"

	"codeq/config"
)

type healthCmd struct {
	Wait time.Duration `help:"Wait up to so long until the server is ready."`
}

// Help is the longer text of "codeq health --help".
func (h *healthCmd) Help() string {
	return `Ends with exit code 0 when the server hands out work, and with 75 when it does not: it starts, stops, has a disk that
is nearly full, or is not there. It needs no token and no shell, so a container can check itself with it:

  HEALTHCHECK CMD ["codeq", "health"]`
}

// Run asks the server whether it hands out work.
func (h *healthCmd) Run(a *app) error {
	if h.Wait < 0 {
		return wrong("--wait must not be negative, got %s", h.Wait)
	}
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	answer, err := c.Ready(ctx, h.Wait)
	if err != nil {
		return tryAgain("not ready: %w", err)
	}
	if a.JSON {
		return a.writeLine(a.answer)
	}
	return a.writeLine(fmt.Appendf(nil, "ready: %s, %d shards, durability %s, disk %s",
		c.URL(), answer.Shards, printable(answer.Durability), printable(answer.DiskGuard)))
}

type configCmd struct {
	Show configShowCmd `cmd:"" eg:"codeq config show" help:"Show the settings of the server, and where each comes from."`
}

type configShowCmd struct{}

// Run shows the settings that the server was started with.
func (s *configShowCmd) Run(a *app) error {
	ctx, c, done, err := a.connect()
	if err != nil {
		return err
	}
	defer done()
	answer, err := c.Settings(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.writeLine(answer)
	}
	var settings config.Listing
	if err := json.Unmarshal(answer, &settings); err != nil {
		return fmt.Errorf("read the settings of %s: %w", c.URL(), err)
	}
	return a.print([]byte(printable(string(settings.AppendYAML(nil)))))
}
