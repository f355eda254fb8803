//go:build unix && !clientonly

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"codeq/config"
	"codeq/internal/server"
)

// cutFor is how long a server that is told to stop may take to end after its
// grace. Nothing is lost when the process ends before it is through.
const cutFor = 10 * time.Second

type serveCmd struct {
	config.Serve
	Config      string `type:"path" env:"CODEQ_CONFIG" placeholder:"FILE" help:"File of settings, in YAML or JSON."`
	PrintConfig bool   `help:"Show the settings and the origin of each, and end."`
}

// Help is the longer text of "codeq serve --help".
func (s *serveCmd) Help() string {
	return `Each setting can also be given as a variable of the environment, or by its name in the file. A flag beats the
environment, the environment beats the file, the file beats the default. The signal HUP reads the token file again,
which also happens whenever the file changes. A server that was started on a terminal stops on HUP, because HUP means
that the terminal closes.`
}

// Run serves until it is told to stop.
func (s *serveCmd) Run(a *app) error {
	settings, err := s.resolve(a)
	if err != nil {
		return err
	}
	if s.PrintConfig {
		if a.JSON {
			return a.writeLine(settings.Listing().AppendJSON(nil))
		}
		return a.print(settings.Listing().AppendYAML(nil))
	}
	tokens, err := s.openTokens(settings)
	if err != nil {
		return err
	}
	closes := a.hangupStops(signal.Ignored(syscall.SIGHUP))
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	a.detachOutput()
	log := s.log(a)
	memory := s.Memory
	if err := s.limitMemory(log); err != nil {
		return err
	}
	if s.Memory != memory {
		settings.ChangedBy("memory", "GOMEMLIMIT")
	}
	options := s.options()
	if options.Providers, err = s.openProviders(settings, tokens, log); err != nil {
		return err
	}
	if err := s.openFiles(&options, settings, log); err != nil {
		return err
	}
	options.Tokens, options.Log, options.LogLost = tokens, log, a.lost
	options.Settings = settings.Listing().AppendJSON(nil)
	srv, err := unlessStopped(a.stops, func() (*server.Server, error) { return server.Open(options) })
	if errors.Is(err, errStoppedEarly) {
		a.say("%s", err)
		return nil
	}
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve() }()
	s.started(log, srv)
	if err := a.announce(s, srv); err != nil {
		return errors.Join(err, a.shutdown(srv, s.ShutdownGrace))
	}
	if !a.flush() || a.lost() > 0 {
		log.Warn().Str("address", srv.Addr()).Msg("nobody read the output of the server at its start; it serves all the same")
	}
	return (&serving{app: a, server: srv, log: log, grace: s.ShutdownGrace, served: served, hangups: hangups, closes: closes}).untilTold()
}

// serving is a server that has started.
type serving struct {
	app     *app
	server  *server.Server
	log     zerolog.Logger
	grace   time.Duration
	served  <-chan error
	hangups <-chan os.Signal
	closes  bool // the terminal closes with a hangup; otherwise it has the tokens read again
}

// untilTold serves until a signal tells it to stop, or it cannot go on, and tells a supervisor.
func (s *serving) untilTold() error {
	supervisor := supervisedBy(os.Getenv, s.log)
	supervisor.tell("READY=1")
	defer supervisor.watch(s.server.Pulse().Beat)()
	stop := func(why os.Signal) error {
		supervisor.tell("STOPPING=1")
		return s.app.stop(s.log, s.server, s.grace, why)
	}
	for {
		select {
		case err := <-s.served:
			return errors.Join(err, s.app.shutdown(s.server, s.grace))
		case <-s.hangups:
			if s.closes {
				return stop(syscall.SIGHUP)
			}
			s.server.ReloadTokens()
		case signal := <-s.app.stops:
			return stop(signal)
		}
	}
}

// openFiles reads what is not in the settings themselves: certificates, and whether the data
// directory is that of a node of a cluster.
func (s *serveCmd) openFiles(o *server.Options, settings *config.Resolved, log zerolog.Logger) (err error) {
	if o.Certificate, err = s.openCertificate(settings, log); err == nil {
		o.Cluster, err = s.cluster(settings)
	}
	return err
}

// errStoppedEarly is how a server ends that was told to stop before it served.
var errStoppedEarly = errors.New("stopped before the server had started: nothing was accepted")

// unlessStopped opens a server, or returns at the first signal: a start can take long, or
// block on a disk, and the end of the process loses nothing.
func unlessStopped(stops <-chan os.Signal, open func() (*server.Server, error)) (*server.Server, error) {
	var srv *server.Server
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv, err = open()
	}()
	select {
	case <-done:
		return srv, err
	case <-stops:
		return nil, errStoppedEarly
	}
}

// started logs what serves where. Without a terminal only the log has it.
func (s *serveCmd) started(log zerolog.Logger, srv *server.Server) {
	log.Info().Str("version", version).Str("commit", commit).Int("pid", os.Getpid()).Str("address", srv.Addr()).
		Str("data", s.Data).Bool("created", srv.Created()).Int("shards", srv.Shards()).
		Str("durability", server.Durability).Str("access", s.access()).Msg("started")
}

// stop shuts the server down for a signal, and logs that the stop began and how it ended.
func (a *app) stop(log zerolog.Logger, srv *server.Server, grace time.Duration, why os.Signal) error {
	began := time.Now()
	log.Info().Stringer("signal", why).Stringer("grace", grace).Int("sessions", srv.Sessions()).
		Msg("stopping: requests in flight are finished within the grace; Ctrl-C again stops at once")
	err := a.shutdown(srv, grace)
	log.Info().Err(err).Dur("tookMs", time.Since(began)).Msg("stopped")
	return err
}

// options are the settings that the server itself acts on.
func (s *serveCmd) options() server.Options {
	return server.Options{
		DataDir: s.Data, Listen: s.Listen, Shards: s.Shards, InsecureNoAuth: s.InsecureNoAuth,
		Names: server.Names{
			PublicHosts: s.PublicHost, AllowOrigins: s.AllowOrigin, PublicURL: s.PublicURL, NodeURL: s.NodeURL, WebhookAllow: s.WebhookAllow,
		},
		Artifacts: server.Artifacts{
			Dir: s.ArtifactsDir, Shared: s.ArtifactsShared, S3: s.ArtifactsS3, MaxBytes: int64(s.ArtifactMaxBytes), Redirect: s.ArtifactsRedirect,
			S3Keys: server.S3Keys{Access: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), Session: os.Getenv("AWS_SESSION_TOKEN")},
		},
		RetentionFor: s.Retention, DLQRetentionFor: s.DLQRetention,
		MaxSessions: s.MaxSessions, PingSeconds: s.PingSeconds, RequireLeaseToken: s.RequireToken, MemoryBytes: int64(s.Memory), EventsBytes: int64(s.EventsMemory),
		Others: server.Others{OTLPEndpoint: s.OTLPEndpoint}, Version: version,
	}
}

// hangupStops reports whether HUP says that the terminal closes on which the server was
// started. Where it was ignored before it was listened to, as under nohup, it does not.
func (a *app) hangupStops(ignored bool) bool {
	return (a.inIsTerminal || a.errIsTerminal) && !ignored
}

// shutdown stops the server in order. A signal meanwhile cuts it short; if it
// does not end even then, the process does, which loses nothing accepted.
func (a *app) shutdown(srv *server.Server, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Shutdown(ctx) }()
	select {
	case err := <-stopped:
		return err
	case <-a.stops:
		cancel()
	case <-ctx.Done():
	}
	select {
	case err := <-stopped:
		return err
	case <-a.stops:
	case <-time.After(cutFor):
	}
	return errors.New("the server did not stop in time and was ended; everything that it accepted is on disk")
}

// announce says what serves where, and what to try: to people at a terminal, and
// with --json to the program that started this one.
func (a *app) announce(s *serveCmd, srv *server.Server) error {
	url := "http://" + srv.Addr()
	if s.TLSCert != "" {
		url = "https://" + srv.Addr()
	}
	if a.JSON {
		authentication := "none"
		if s.Tokens != "" || s.Providers != "" {
			authentication = "tokens"
		}
		return a.writeJSON(announced{version, s.Data, srv.Created(), srv.Shards(), server.Durability, authentication, srv.Addr(), url, os.Getpid()})
	}
	if !a.outIsTerminal {
		return nil
	}
	state := "found"
	if srv.Created() {
		state = "new"
	}
	f := &fields{}
	f.add("data", fmt.Sprintf("%s (%s)", s.Data, state))
	f.add("shards", fmt.Sprint(srv.Shards()))
	f.add("durability", server.Durability+": what is acknowledged survives kill -9 and a power cut")
	f.add("access", s.access())
	f.add("address", url)
	f.add("stop", "Ctrl-C; a second one stops at once")
	fmt.Fprintf(a.out, "codeq %s\n", version)
	if err := f.write(a); err != nil {
		return err
	}
	flag := ""
	if url != "http://"+defaultListen {
		flag = " --url " + url
	}
	fmt.Fprintf(a.out, "\nTry it in other terminals:\n")
	fmt.Fprintf(a.out, "  %s work sha256%s --window 8 -- sha256sum\n", a.program, flag)
	fmt.Fprintf(a.out, "  %s enqueue sha256%s '{\"file\":\"a.iso\"}'\n", a.program, flag)
	_, err := fmt.Fprintf(a.out, "  %s result%s --wait 30s ID\n\n", a.program, flag)
	return err // also that of a write before
}

func (s *serveCmd) access() string {
	switch {
	case s.Tokens != "" && s.Providers != "":
		return "by token, from " + s.Tokens + " and the providers of " + s.Providers
	case s.Tokens != "" || s.Providers != "":
		return "by token, from " + cmp.Or(s.Tokens, "the providers of "+s.Providers)
	}
	if s.InsecureNoAuth {
		return "no authentication: everybody who reaches the address may do everything (--insecure-no-auth)"
	}
	return "no authentication, loopback only"
}

// announced is the same for programs.
type announced struct {
	Version        string `json:"version"`
	Data           string `json:"data"`
	Created        bool   `json:"created"`
	Shards         int    `json:"shards"`
	Durability     string `json:"durability"`
	Authentication string `json:"authentication"`
	Address        string `json:"address"`
	URL            string `json:"url"`
	PID            int    `json:"pid"`
}
