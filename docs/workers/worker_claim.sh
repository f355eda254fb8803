#!/bin/sh
# codeq finds the server in CODEQ_URL and the token in CODEQ_TOKEN.
while :; do
	task=$(codeq claim square --wait 30s --lease 1m --name "script-$$" --quiet) || {
		[ $? = 3 ] || sleep 1 # 3: there is none
		continue
	}
	rest=${task#* } id=${task%% *} token=${rest%% *} payload=${rest#* }
	case $payload in
	"" | *[!0-9]*) codeq nack "$id" "$token" "the payload must be an integer" ;;
	*) codeq complete "$id" "$token" "{\"square\":$((payload * payload))}" ;;
	esac
done
