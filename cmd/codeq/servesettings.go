//go:build unix && !clientonly

package main

import (
	"crypto/tls"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"codeq/config"
	"codeq/internal/auth"
	"codeq/internal/identity"
	"codeq/internal/server"
)

// besideSettings are variables of other commands, which may be set where a server
// is started, too.
var besideSettings = []string{
	"CODEQ_CONFIG", "CODEQ_URL", "CODEQ_TOKEN", "CODEQ_TENANT", "CODEQ_CA", "CODEQ_CLIENT_CERT", "CODEQ_TASK_ID", "CODEQ_COMMAND", "CODEQ_ATTEMPTS", "CODEQ_DELIVERY", "CODEQ_TRACEPARENT", "CODEQ_TRACESTATE", "CODEQ_ARTIFACTS",
}

// variables names those of the environment, but for what only the tests of this
// program set.
func variables() (names []string) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "CODEQ_TEST_") {
			names = append(names, name)
		}
	}
	return names
}

// resolve reads the settings that are not in the command line and checks them all.
func (s *serveCmd) resolve(a *app) (*config.Resolved, error) {
	settings, err := config.Resolve(&s.Serve, config.Sources{
		Flags: a.given, Env: os.Getenv, File: s.Config, Variables: variables(), Beside: besideSettings,
	})
	if err != nil {
		return nil, &exitError{err, exitWrong}
	}
	if s.Shards == 0 {
		settings.ChangedBy("shards", "data directory")
	}
	if s.Tokens == "" && s.Providers == "" {
		if err := auth.CheckListener(s.Listen, s.InsecureNoAuth); err != nil {
			return nil, wrong("listen (%s): %w", settings.Origin("listen"), err)
		}
	}
	return settings, nil
}

// openTokens reads the file of tokens; nil without one.
func (s *serveCmd) openTokens(settings *config.Resolved) (*auth.Tokens, error) {
	if s.Tokens == "" {
		return nil, nil
	}
	tokens, err := auth.OpenTokens(s.Tokens)
	if err != nil {
		return nil, wrong("tokens (%s): %w", settings.Origin("tokens"), err)
	}
	return tokens, nil
}

// openProviders reads the file of providers; nil without one.
func (s *serveCmd) openProviders(settings *config.Resolved, tokens *auth.Tokens, log zerolog.Logger) (*identity.Providers, error) {
	if s.Providers == "" {
		return nil, nil
	}
	providers, err := identity.Open(identity.Options{File: s.Providers, Tokens: tokens, Log: log})
	if err != nil {
		return nil, wrong("providers (%s): %w", settings.Origin("providers"), err)
	}
	return providers, nil
}

// openCertificate reads the files of TLS; nil without them.
func (s *serveCmd) openCertificate(settings *config.Resolved, log zerolog.Logger) (*server.Certificate, error) {
	if s.TLSCert == "" {
		return nil, nil
	}
	certificate, err := server.OpenCertificate(s.tlsFiles(), log)
	if err != nil {
		return nil, wrong("tls-cert (%s): %w", settings.Origin("tls-cert"), err)
	}
	return certificate, nil
}

func (s *serveCmd) tlsFiles() server.TLSFiles {
	files := server.TLSFiles{Certificate: s.TLSCert, Key: s.TLSKey, ClientCA: s.TLSClientCA, Least: tls.VersionTLS13}
	if s.TLSMin == "1.2" {
		files.Least = tls.VersionTLS12
	}
	return files
}

// partOfBallast is the part of the memory that the ballast has: an eighth. The collector
// lets at least that much become garbage before it collects.
const partOfBallast = 8

// ballast is memory that is never written, so the system never provides it, and that the
// collector counts as in use.
var ballast []byte

// leastMemory is the least limit of the collector with which a server works through
// a backlog without collecting all the time.
const leastMemory = 64 << 20

// limitMemory sets the limit of the garbage collector. If GOMEMLIMIT is set, the server
// uses no more than that. Memtables and block cache are outside the heap, and the heap is
// small: with default settings the collector would run eighty times a second to keep it at
// four megabytes, for a fifth of the processor time of a task. The limit does not count
// the ballast.
func (s *serveCmd) limitMemory(log zerolog.Logger) error {
	if os.Getenv("GOMEMLIMIT") != "" {
		limit := config.Bytes(debug.SetMemoryLimit(-1))
		if limit < leastMemory {
			return wrong("GOMEMLIMIT of %v is too small for a server: set 64MiB or more, or leave it out and set memory", limit)
		}
		if limit < s.Memory {
			log.Warn().Stringer("GOMEMLIMIT", limit).Stringer("memory", s.Memory).
				Msg("GOMEMLIMIT is less than memory: memtables, block cache, mailboxes and outboxes are sized by GOMEMLIMIT")
			s.Memory = limit
		}
		return nil
	}
	if os.Getenv("GOGC") == "" {
		ballast = make([]byte, s.Memory/partOfBallast)
	}
	debug.SetMemoryLimit(int64(s.Memory) + int64(len(ballast)))
	return nil
}

// log writes to standard error: for people on a terminal, else as JSON lines,
// unless a setting says which.
func (s *serveCmd) log(a *app) zerolog.Logger {
	out := a.err
	if s.LogFormat == "console" || s.LogFormat == "auto" && a.errIsTerminal && !a.JSON {
		out = zerolog.ConsoleWriter{Out: a.err, TimeFormat: time.TimeOnly, NoColor: !a.errIsTerminal}
	}
	level, err := zerolog.ParseLevel(s.LogLevel)
	if err != nil {
		panic("the levels of config are not those of zerolog: " + err.Error())
	}
	return zerolog.New(&fatalFlusher{out, a.flush}).Level(level).With().Timestamp().Logger()
}
