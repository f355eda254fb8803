#!/bin/sh
# codeq finds the server in CODEQ_URL and the token in CODEQ_TOKEN.
exec codeq work square --window 8 --name shell -- sh -c '
	read -r payload || [ "$payload" ] # the last line may have no end
	case $payload in
	"" | *[!0-9]*) echo "the payload must be an integer" >&2; exit 1 ;; # tried again later; 65 is for good
	esac
	echo "{\"square\":$((payload * payload))}"'
