package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
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
// cookie has the digest of a token and its end, encrypted with a key that stays in the data
// directory. So it shows nothing of the token, is good after a restart and on no other server,
// and ends with the token. The server keeps no list of cookies. Any goroutine.
type Logins struct {
	// Name is the name of the cookie. It is another one for each data directory, because a
	// browser sends the cookies of a host to all of its ports.
	Name   string
	tokens *Tokens
	sealed cipher.AEAD
}

// pageBytes is what a cookie hides: its end in Unix milliseconds, and a digest.
const pageBytes = 8 + len(digest{})

// NewLogins makes the cookies for the tokens of a file. secret stays the same for a data
// directory.
func NewLogins(tokens *Tokens, secret []byte) *Logins {
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
	return &Logins{Name: PageCookie + hex.EncodeToString(mac("page cookie name")[:4]), tokens: tokens, sealed: sealed}
}

// Cookie is the value of a new cookie for a principal of the file, and how long it is good.
func (l *Logins) Cookie(who *Principal) (value string, goodFor time.Duration) {
	nowMs := l.tokens.nowMs()
	endMs := nowMs + pageFor.Milliseconds()
	if who.ExpiresAtMs != 0 {
		endMs = min(endMs, who.ExpiresAtMs)
	}
	plain := binary.BigEndian.AppendUint64(make([]byte, 0, pageBytes), uint64(endMs))
	plain = append(plain, who.token.digest[:]...)
	return base64.RawURLEncoding.EncodeToString(l.sealed.Seal(nil, nil, plain, nil)), time.Duration(endMs-nowMs) * time.Millisecond
}

// Authenticate returns the principal of a cookie, which ends with the cookie, or the refusal
// unauthenticated.
func (l *Logins) Authenticate(value string) (*Principal, *wire.Error) {
	if text, err := base64.RawURLEncoding.DecodeString(value); err == nil {
		if plain, err := l.sealed.Open(nil, nil, text, nil); err == nil && len(plain) == pageBytes {
			ref := tokenRef{tokens: l.tokens, digest: digest(plain[8:]), untilMs: int64(binary.BigEndian.Uint64(plain))}
			if who := ref.current(); who != nil && !who.ExpiredAt(l.tokens.nowMs()) {
				return who, nil
			}
		}
	}
	return nil, wire.Refuse(wire.CodeUnauthenticated, "the login of this page has ended; log in with a token again")
}
