package keeper

// Kind is what a report is about.
type Kind byte

// The kinds of reports.
const (
	// Starting: the program is about to be started. From here on it may have run,
	// and have ended its keeper before that could say so.
	Starting Kind = 'b'
	// Running: the program was started; Value is its process and group.
	Running Kind = 'r'
	// Failed: it could not be started; Value is the number of the error.
	Failed Kind = 'f'
	// Stopped: it was stopped; Value is the signal.
	Stopped Kind = 's'
	// Continued: it goes on.
	Continued Kind = 'c'
	// Ended: Value is its syscall.WaitStatus.
	Ended Kind = 'e'
	// Empty: after Term or Kill nobody of the group is left.
	Empty Kind = 'g'
	// Gone: the keeper itself has ended; Value is its syscall.WaitStatus. It is
	// the last report. Without Failed or Ended before it the keeper was killed,
	// and its program may live.
	Gone Kind = 'x'
)
