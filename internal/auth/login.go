package auth

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"codeq/wire"
)

const (
	// pageFor is how long a cookie of Logins is good.
	pageFor = 12 * time.Hour
	// PageCookie begins the name of every cookie of Logins, of this server and of others.
	PageCookie = "codeq_page_"
)

// Logins makes the cookies with which a browser stays logged in, and knows them again. A
// cookie has its end, and the digest of a token of the file or the token of a provider, encrypted
// with a key that stays in the data directory. So it shows nothing of the token, is good after a
// restart and on no other server, and ends with the token. The server keeps no list of cookies.
// Any goroutine.
type Logins struct {
	// Name is the name of the cookie. It is another one for each data directory, because a
	// browser sends the cookies of a host to all of its ports.
	Name string
	// tokens is nil without a token file; all knows every token.
	tokens *Tokens
	all    Authenticator
	sealed cipher.AEAD
}

// A cookie hides its end in Unix milliseconds, what follows, and that.
const (
	endBytes    = 8
	hidesDigest = 'd'
	hidesToken  = 't'
	// mostHidden is the longest token whose cookie a browser takes.
	mostHidden = 2900
)

// NewLogins makes the cookies for the tokens of a file, which may be nil, and for those that an
// authenticator knows. secret stays the same for a data directory.
func NewLogins(tokens *Tokens, all Authenticator, secret []byte) *Logins {
	mac := func(what string) []byte {
		m := hmac.New(sha256.New, secret)
		m.Write([]byte(what))
		return m.Sum(nil)
	}
	block, err := aes.NewCipher(mac("page cookie"))
	if err != nil {
		panic("auth: a key of 32 bytes is refused: " + err.Error())
	}
	sealed, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("auth: GCM refuses AES: " + err.Error())
	}
	return &Logins{Name: PageCookie + hex.EncodeToString(mac("page cookie name")[:4]), tokens: tokens, all: all, sealed: sealed}
}

func (l *Logins) nowMs() int64 {
	if l.tokens == nil {
		return wallMs()
	}
	return l.tokens.nowMs()
}

// Cookie is the value of a new cookie for a principal and its credential, and how long it is good.
func (l *Logins) Cookie(who *Principal, credential string) (value string, goodFor time.Duration, refusal *wire.Error) {
	nowMs := l.nowMs()
	endMs := nowMs + pageFor.Milliseconds()
	if who.ExpiresAtMs != 0 {
		endMs = min(endMs, who.ExpiresAtMs)
	}
	plain := binary.BigEndian.AppendUint64(nil, uint64(endMs))
	if ref, ofFile := who.Source.(*tokenRef); ofFile {
		plain = append(append(plain, hidesDigest), ref.digest[:]...)
	} else if len(credential) <= mostHidden {
		plain = append(append(plain, hidesToken), credential...)
	} else {
		return "", 0, wire.Refuse(wire.CodeTooLarge, fmt.Sprintf("the token has %d bytes, and a browser keeps a login for %d at most",
			len(credential), mostHidden))
	}
	return base64.RawURLEncoding.EncodeToString(l.sealed.Seal(nil, nil, plain, nil)), time.Duration(endMs-nowMs) * time.Millisecond, nil
}

// Authenticate returns the principal of a cookie, which ends with the cookie, or the refusal
// unauthenticated.
func (l *Logins) Authenticate(ctx context.Context, value string) (*Principal, *wire.Error) {
	if text, err := base64.RawURLEncoding.DecodeString(value); err == nil {
		if plain, err := l.sealed.Open(nil, nil, text, nil); err == nil && len(plain) > endBytes {
			who, refusal := l.hidden(ctx, plain[endBytes], plain[endBytes+1:])
			if refusal != nil && refusal.Code == wire.CodeAuthUnavailable {
				return nil, refusal
			}
			if who != nil {
				who = who.until(int64(binary.BigEndian.Uint64(plain)))
			}
			if who != nil && !who.ExpiredAt(l.nowMs()) {
				return who, nil
			}
		}
	}
	return nil, wire.Refuse(wire.CodeUnauthenticated, "the login of this page has ended; log in with a token again")
}

// hidden is the principal of what a cookie hides, nil if it is good no more.
func (l *Logins) hidden(ctx context.Context, kind byte, what []byte) (*Principal, *wire.Error) {
	switch {
	case kind == hidesToken:
		return l.all.Authenticate(ctx, string(what))
	case kind == hidesDigest && len(what) == len(digest{}) && l.tokens != nil:
		return l.tokens.find(digest(what)), nil
	}
	return nil, nil
}
