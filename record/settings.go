package record

import (
	"strconv"

	"codeq/wire"
)

// Settings are what a queue was set to. Every shard has a copy; the one of the
// queue's home, wire.ShardOfQueue, is the newest.
type Settings struct {
	// Version counts the changes; 0 means that nothing was ever set.
	Version int64
	// Paused keeps the tasks of the queue from workers.
	Paused bool
	// Deleting: the queue takes no task, and goes when it has none left.
	Deleting bool
	wire.QueueSettings
}

// AppendSettings adds the value of the settings of a queue.
func AppendSettings(dst []byte, s *Settings) []byte {
	dst = append(dst, `{"version":`...)
	dst = strconv.AppendInt(dst, s.Version, 10)
	dst = appendFlagMember(dst, `,"paused":`, s.Paused)
	dst = appendFlagMember(dst, `,"deleting":`, s.Deleting)
	dst = appendFlagMember(dst, `,"spread":`, s.Spread)
	dst = appendIntMember(dst, `,"maxAttempts":`, int64(s.MaxAttempts))
	dst = appendIntMember(dst, `,"leaseSeconds":`, int64(s.LeaseSeconds))
	dst = appendIntMember(dst, `,"timeoutSeconds":`, s.TimeoutSeconds)
	dst = appendIntMember(dst, `,"ttlSeconds":`, s.TTLSeconds)
	dst = appendStringMember(dst, `,"backoff":`, s.Backoff.Policy)
	dst = appendIntMember(dst, `,"backoffBaseSeconds":`, s.Backoff.BaseSeconds)
	dst = appendIntMember(dst, `,"backoffMaxSeconds":`, s.Backoff.MaxSeconds)
	dst = appendIntMember(dst, `,"retentionSeconds":`, s.RetentionSeconds)
	dst = appendIntMember(dst, `,"dlqRetentionSeconds":`, s.DLQRetentionSeconds)
	return append(dst, '}')
}

// appendFlagMember writes what is true as 1.
func appendFlagMember(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(append(dst, name...), '1')
}

// ParseSettings reads what AppendSettings wrote.
func ParseSettings(data []byte, set *Settings) error {
	s := scanner{text: string(data)}
	*set = Settings{}
	first := true
	s.take('{')
	for name, ok := s.member(&first); ok; name, ok = s.member(&first) {
		switch name {
		case "version":
			set.Version = s.int64()
		case "paused":
			set.Paused = s.int64() == 1
		case "deleting":
			set.Deleting = s.int64() == 1
		case "spread":
			set.Spread = s.int64() == 1
		case "maxAttempts":
			set.MaxAttempts = s.int()
		case "leaseSeconds":
			set.LeaseSeconds = s.int()
		case "timeoutSeconds":
			set.TimeoutSeconds = s.int64()
		case "ttlSeconds":
			set.TTLSeconds = s.int64()
		case "backoff":
			set.Backoff.Policy = s.str()
		case "backoffBaseSeconds":
			set.Backoff.BaseSeconds = s.int64()
		case "backoffMaxSeconds":
			set.Backoff.MaxSeconds = s.int64()
		case "retentionSeconds":
			set.RetentionSeconds = s.int64()
		case "dlqRetentionSeconds":
			set.DLQRetentionSeconds = s.int64()
		default:
			s.skip(0)
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	if set.Version < 1 {
		return ErrDamaged
	}
	return nil
}
