package wire

import "testing"

// TestCodesKeepTheirMeaning: clients decide by these numbers; a row may be
// added, never changed.
func TestCodesKeepTheirMeaning(t *testing.T) {
	rows := map[Code]codeRow{
		"invalid_body": {400, false}, "invalid_command": {400, false}, "invalid_priority": {400, false},
		"invalid_time": {400, false}, "invalid_webhook": {400, false}, "invalid_result": {400, false},
		"invalid_argument": {400, false}, "unknown_member": {400, false}, "unauthenticated": {401, false}, "forbidden": {403, false},
		"task_not_found": {404, false}, "result_not_found": {404, true}, "not_owner": {403, false},
		"lease_lost": {409, false}, "not_in_progress": {409, false}, "already_terminal": {409, false},
		"idempotency_conflict": {409, false}, "not_in_dlq": {409, false}, "queue_not_empty": {409, false},
		"not_waiting": {409, false}, "queue_deleted": {409, false}, "queue_not_found": {404, false}, "session_not_found": {404, false},
		"not_found": {404, false}, "method_not_allowed": {405, false}, "unsupported": {415, false},
		"too_large": {413, false}, "rate_limited": {429, true}, "internal": {500, true},
		"overloaded": {503, true}, "draining": {503, true}, "not_leader": {503, true}, "storage_full": {507, true},
		"forbidden_host": {403, false}, "forbidden_origin": {403, false}, "auth_unavailable": {503, true},
		"version_conflict": {409, false}, "cluster_refused": {409, false},
	}
	for code, row := range rows {
		if code.HTTPStatus() != row.httpStatus || code.Retryable() != row.retryable {
			t.Errorf("%s is %d, retryable %t", code, code.HTTPStatus(), code.Retryable())
		}
	}
	if len(codeTable) != len(rows) {
		t.Errorf("there are %d codes, the test knows %d", len(codeTable), len(rows))
	}
	if newer := Code("from_a_newer_server"); newer.HTTPStatus() != 500 || newer.Retryable() {
		t.Errorf("an unknown code is %d, retryable %t", newer.HTTPStatus(), newer.Retryable())
	}
}

func TestTerminalStates(t *testing.T) {
	for status, terminal := range map[Status]bool{
		StatusPending: false, StatusInProgress: false, StatusCompleted: true, StatusFailed: true, StatusCancelled: true,
	} {
		if status.Terminal() != terminal {
			t.Errorf("%s is terminal: %t", status, status.Terminal())
		}
	}
}
