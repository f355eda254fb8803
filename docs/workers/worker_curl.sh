#!/bin/sh
# The server is in CODEQ_URL and the token in CODEQ_TOKEN.
tasks=${CODEQ_URL:-http://127.0.0.1:8080}/v1/codeq/tasks
ask() { # path, body
	curl -sS --max-time 60 -H "Authorization: Bearer $CODEQ_TOKEN" -d "$2" "$tasks/$1"
}
member() { # name: its text in the task
	printf '%s\n' "$task" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'
}
while :; do
	task=$(ask claim '{"commands":["square"],"leaseSeconds":60,"waitSeconds":30,"workerId":"curl-'$$'"}') || { sleep 1; continue; }
	[ "$task" ] || continue # there is none
	id=$(member id) token=$(member leaseToken) payload=$(member payload)
	[ "$token" ] || { printf '%s\n' "$task" >&2; sleep 1; continue; } # the server refuses
	case $payload in
	"" | *[!0-9]*) ask "$id/nack" '{"reason":"the payload must be an integer","leaseToken":"'"$token"'"}' ;;
	*) ask "$id/result" '{"result":{"square":'$((payload * payload))'},"leaseToken":"'"$token"'"}' ;;
	esac
	echo
done
