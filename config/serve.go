package config

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"codeq/wire"
)

// minMailboxBytes is the smallest mailbox of a shard: the largest request must fit into
// three quarters of it, because one quarter is kept for answers.
const minMailboxBytes = 12 << 20

// Serve are the settings of "codeq serve". The tags are the table:
//
//	name         flag --name, variable CODEQ_NAME, key name in the file
//	default      without one the setting can have no value
//	range        lowest..highest, for numbers, sizes and times
//	enum         the words allowed, for texts
//	placeholder  the value in the help
//	secret       the value is masked whenever settings are shown
//	help         one sentence
type Serve struct {
	Listen    string `name:"listen" default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address to listen on; port 0 takes a free one."`
	Data      string `name:"data" default:"./codeq-data" placeholder:"DIR" help:"Directory of the data; made if it is not there."`
	Shards    int    `name:"shards" range:"1..32" help:"Shards of a new data directory, 4 if not given; what a directory has can not be changed."`
	Tokens    string `name:"tokens" placeholder:"FILE" help:"File of tokens, as \"codeq token new\" writes it; without one and without providers there is no authentication."`
	Providers string `name:"providers" placeholder:"FILE" help:"File of identity providers, whose JSON web tokens and opaque tokens are credentials beside those of the file of tokens."`
	TLS
	InsecureNoAuth bool    `name:"insecure-no-auth" default:"false" help:"Listen on any address without authentication: everybody who reaches it may do everything."`
	PublicHost     Hosts   `name:"public-host" placeholder:"HOST" help:"Names by which clients ask for a server without authentication, besides localhost and that of listen; an IP address needs none. A request for another name is refused: a web page could have made that name point here."`
	AllowOrigin    Origins `name:"allow-origin" placeholder:"ORIGIN" help:"Origins of web pages on other servers that may send requests, open sessions and read the answers of producers and readers, as browsers name them: https://app.example. Also needed for pages of this server behind a proxy that speaks https."`
	Callbacks
	Artifacts
	Node
	MaxSessions int `name:"max-sessions" default:"10000" range:"1..1000000" help:"Sessions that may be open at once; more are closed with 4429. The limit of open files may allow fewer."`
	PingSeconds int `name:"ping-seconds" default:"20" range:"1..60" help:"Seconds between two pings of a session. A client that answers neither of two is gone; less than what proxies on the way allow a connection to be silent."`
	Kept
	Memory        Bytes         `name:"memory" default:"512MiB" range:"128MiB..1TiB" placeholder:"SIZE" help:"Memory that the server aims at: an eighth each for memtables, block cache, mailboxes and outboxes, the rest for everything else; also the limit for the garbage collector unless GOMEMLIMIT is set."`
	EventsMemory  Bytes         `name:"events-memory" default:"48MiB" range:"1MiB..64GiB" placeholder:"SIZE" help:"Memory for the last events, the counts of each queue and their history, within memory: a third for events of 48 bytes each. Queues beyond it are counted together."`
	RequireToken  bool          `name:"require-lease-token" default:"false" help:"Refuse calls over HTTP about a delivery without its leaseToken. Otherwise the subject it was made to may leave the token out."`
	ShutdownGrace time.Duration `name:"shutdown-grace" default:"10s" range:"0s..10m" help:"How long a server that is told to stop waits for sessions to finish what they hold."`
	Telemetry
}

// Telemetry are the settings of what the server tells about itself.
type Telemetry struct {
	LogLevel     string `name:"log-level" default:"info" enum:"debug,info,warn,error" placeholder:"LEVEL" help:"Least important lines of the log: debug, info, warn or error."`
	LogFormat    string `name:"log-format" default:"auto" enum:"auto,console,json" placeholder:"FORMAT" help:"Log for people (console) or programs (json); auto is console on a terminal."`
	OTLPEndpoint string `name:"otlp-endpoint" placeholder:"URL" help:"Collector of OpenTelemetry to which the server sends spans of tasks, by OTLP over HTTP, such as http://127.0.0.1:4318; without one it makes none. The variables OTEL_… set the rest, such as OTEL_EXPORTER_OTLP_HEADERS and OTEL_TRACES_SAMPLER."`
}

// TLS are the settings of a server that speaks TLS.
type TLS struct {
	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server, in PEM, with those of its issuers behind it; with it the server speaks TLS and nothing else. Read again when it changes, as all files of TLS are."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"Private key of the certificate, in PEM."`
	TLSMin      string `name:"tls-min" default:"1.3" enum:"1.2,1.3" placeholder:"VERSION" help:"Least version of TLS that clients may speak."`
	TLSClientCA string `name:"tls-client-ca" placeholder:"FILE" help:"Certificates of the issuers, in PEM, whose client certificates are credentials beside tokens: a token file says by certificate what each may do."`
}

// Callbacks are the settings of what is posted to webhooks and targets.
type Callbacks struct {
	PublicURL    string   `name:"public-url" placeholder:"URL" help:"Address under which clients reach this server, such as https://codeq.example.com. Callbacks name it where a result is too large to be posted."`
	WebhookAllow Networks `name:"webhook-allow" placeholder:"HOST" help:"Hosts to which outcomes of tasks, and tasks of queues with a target, may be posted besides public addresses over https: names, IP addresses and networks such as 10.0.0.0/8. They may be asked over http, too."`
}

// Kept are the settings of how long tasks stay that have ended.
type Kept struct {
	Retention    time.Duration `name:"retention" default:"24h" range:"0s..87600h" help:"How long ended tasks stay with their results and keys, where their queue does not say; 0s is for ever."`
	DLQRetention time.Duration `name:"dlq-retention" default:"168h" range:"0s..87600h" help:"How long dead letters stay, where their queue does not say; 0s is for ever, and 7 days for those that a worker ended FAILED."`
}

// Node are the settings of a node of a cluster.
type Node struct {
	PeerListen string `name:"peer-listen" placeholder:"HOST:PORT" help:"Address to listen on for the other nodes of a cluster, if it is not the one at which they reach this node."`
	NodeURL    string `name:"node-url" placeholder:"URL" help:"Address under which clients reach this node of a cluster, such as https://a.example.com:8080. Clients that have it are sent there while this node leads."`
}

// Artifacts are the settings of the files that workers upload for their tasks.
type Artifacts struct {
	ArtifactsDir      string `name:"artifacts-dir" placeholder:"DIR" help:"Directory of the files that workers upload for their tasks; without it the directory artifacts in that of the data. A backup does not have them."`
	ArtifactsS3       string `name:"artifacts-s3" placeholder:"URL" help:"Part of an S3 bucket for these files instead of a directory, such as s3://files/codeq?region=eu-central-1, with &endpoint=https://HOST for a storage that is not Amazon's. The credentials are in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."`
	ArtifactsShared   bool   `name:"artifacts-shared" default:"false" help:"All nodes of the cluster have the directory of artifacts-dir, for example over a network; without it the nodes of a cluster refuse a directory."`
	ArtifactsRedirect bool   `name:"artifacts-redirect" default:"false" help:"Send who asks for a file on to the S3 bucket, with an address that gives that file for 5 minutes, instead of passing its bytes on. Clients must reach the storage."`
	ArtifactMaxBytes  Bytes  `name:"artifact-max-bytes" default:"5GiB" range:"1B..5TiB" placeholder:"SIZE" help:"Largest file that a worker may upload."`
}

// Check checks the rules between two settings. origin says where a setting was set.
func (s *Serve) Check(origin func(name string) string) error {
	var found []error
	for _, file := range []struct{ name, path string }{{"tokens", s.Tokens}, {"providers", s.Providers}} {
		if file.path != "" && s.InsecureNoAuth {
			found = append(found, fmt.Errorf("%s (%s) and insecure-no-auth (%s) contradict each other: "+
				"with %[1]s every address is allowed; leave insecure-no-auth out", file.name, origin(file.name), origin("insecure-no-auth")))
		}
	}
	for _, pair := range []struct{ name, path, needs, has string }{
		{"tls-cert", s.TLSCert, "tls-key", s.TLSKey}, {"tls-key", s.TLSKey, "tls-cert", s.TLSCert},
		{"tls-client-ca", s.TLSClientCA, "tls-cert", s.TLSCert}, {"tls-client-ca", s.TLSClientCA, "tokens", s.Tokens},
	} {
		if pair.path != "" && pair.has == "" {
			found = append(found, fmt.Errorf("%s (%s) needs %s: name that file as well", pair.name, origin(pair.name), pair.needs))
		}
	}
	if s.ArtifactsDir != "" && s.ArtifactsS3 != "" {
		found = append(found, fmt.Errorf("artifacts-dir (%s) and artifacts-s3 (%s) contradict each other: leave one out", origin("artifacts-dir"), origin("artifacts-s3")))
	}
	if s.ArtifactsShared && s.ArtifactsDir == "" {
		found = append(found, fmt.Errorf("artifacts-shared (%s) needs artifacts-dir: name the directory that all nodes have", origin("artifacts-shared")))
	}
	if s.ArtifactsRedirect && s.ArtifactsS3 == "" {
		found = append(found, fmt.Errorf("artifacts-redirect (%s) needs artifacts-s3: a directory has no addresses", origin("artifacts-redirect")))
	}
	if _, ok := wire.ParseOrigin(s.PublicURL); s.PublicURL != "" && !ok {
		found = append(found, fmt.Errorf("public-url of %.80q (%s) must be like https://codeq.example.com, without a path", s.PublicURL, origin("public-url")))
	}
	if _, ok := wire.ParseOrigin(s.NodeURL); s.NodeURL != "" && !ok {
		found = append(found, fmt.Errorf("node-url of %.80q (%s) must be like https://a.example.com:8080, without a path", s.NodeURL, origin("node-url")))
	}
	if u, err := url.Parse(s.OTLPEndpoint); s.OTLPEndpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		found = append(found, fmt.Errorf("otlp-endpoint (%s) must be an http or https URL like http://127.0.0.1:4318, without credentials and query", origin("otlp-endpoint")))
	}
	if least := Bytes(s.Shards) * minMailboxBytes * 2; s.Memory < least {
		found = append(found, fmt.Errorf("shards of %d (%s) need a memory of at least %v, but memory is %v (%s)",
			s.Shards, origin("shards"), least, s.Memory, origin("memory")))
	}
	for _, setting := range []struct {
		name string
		time time.Duration
	}{{"retention", s.Retention}, {"dlq-retention", s.DLQRetention}} {
		if setting.time%time.Millisecond != 0 {
			found = append(found, fmt.Errorf("%s of %v (%s) must be whole milliseconds", setting.name, setting.time, origin(setting.name)))
		}
	}
	return errors.Join(found...)
}
