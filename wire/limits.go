package wire

// Limits of the protocol, in one place. A value over its limit is refused
// with the limit in the sentence; nothing is clamped or cut.
const (
	MaxPayloadBytes   = 1 << 20
	MaxResultBytes    = 1 << 20
	MaxErrorBytes     = 8 << 10
	MaxLineErrorBytes = 1 << 10
	MaxExitCode       = 1<<32 - 1
	MaxSignalBytes    = 32
	MaxCommandBytes   = 200
	MaxTenantBytes    = 128
	MaxKeyBytes       = 512
	MaxWorkerIDBytes  = 200
	MaxTraceBytes     = 512
	MaxNoteBytes      = 512
	// MaxProgressBytes bounds the data of a progress, MaxOutputBytes the text of an output.
	MaxProgressBytes = 4 << 10
	MaxOutputBytes   = 16 << 10
	MaxLabels        = 8
	// MaxLabelBytes bounds the name of a label and its value together.
	MaxLabelBytes         = 64
	MaxConcurrencyBytes   = 128
	MaxBatchTasks         = 1000
	MaxHTTPBodyBytes      = 8 << 20
	MaxClientMessageBytes = 2 << 20
	MaxMessageFrames      = 10_000
	MaxNesting            = 64
	MaxArtifacts          = 100
	MaxArtifactNameBytes  = 1 << 10
	MaxArtifactURLBytes   = 8 << 10
	MaxContentTypeBytes   = 255
	MaxHeartbeatTasks     = 10_000
	MaxSubscribeCommands  = 1000
	MaxListTasks          = 500

	MaxPriority        = 9
	MaxAttemptsLimit   = 1000
	DefaultMaxAttempts = 5

	MaxLeaseSeconds     = 43_200
	DefaultLeaseSeconds = 300
	MaxWindow           = 10_000
	DefaultWindow       = 1
	MaxWaitSeconds      = 60
	MaxClaimTasks       = 100
	MaxClaimWaitSeconds = 30
	// MaxDelaySeconds bounds delaySeconds, runAt, ttlSeconds and expiresAt: ten
	// years.
	MaxDelaySeconds = 10 * 365 * 86_400
	// MaxTimeoutSeconds bounds how long one delivery may run: thirty days.
	MaxTimeoutSeconds = 30 * 86_400

	// MaxServerMessageBytes is the size at which the server closes one message
	// and begins the next; only a single larger frame makes a larger message.
	MaxServerMessageBytes = 256 << 10
	// MinMaxMessageBytes is the least a client may state as its
	// maxMessageBytes, so that every session can take every task.
	MinMaxMessageBytes = MaxPayloadBytes + 64<<10

	MaxUnansweredRequests = 8192
	MaxUnansweredBytes    = 8 << 20

	PingSeconds        = 20
	ResumeGraceSeconds = 15
	MaxSocketsNoHello  = 256
)

// Subprotocol is the name and version of the session protocol.
const Subprotocol = "codeq.v1"
