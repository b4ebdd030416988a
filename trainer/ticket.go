package trainer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Ticket asks for a slice of a run. It is what waits in the broker, which never sees
// the token.
type Ticket struct {
	Run   string `json:"run"`
	Slice int    `json:"slice"`
	MAC   string `json:"mac"` // HMAC-SHA256(token, run "|" slice), in hex
}

// HeaderSignature carries the signature of a request that goes through the broker:
// sha256=HMAC-SHA256(token, body), in hex.
const HeaderSignature = "X-Farm-Signature"

const signaturePrefix = "sha256="

// Key makes and checks what proves that somebody has the token, without sending it. An
// empty Key, that of a suite without a token, takes everything for good.
type Key string

// Ticket for a slice of a run.
func (k Key) Ticket(run string, slice int) Ticket {
	return Ticket{run, slice, k.mac(fmt.Appendf(nil, "%s|%d", run, slice))}
}

// Good reports whether a ticket was made with the same key.
func (k Key) Good(t Ticket) bool {
	return k == "" || hmac.Equal([]byte(t.MAC), []byte(k.Ticket(t.Run, t.Slice).MAC))
}

// Sign a body: the value of HeaderSignature.
func (k Key) Sign(body []byte) string { return signaturePrefix + k.mac(body) }

// Signed reports whether a signature is that of a body.
func (k Key) Signed(body []byte, signature string) bool {
	given, ok := strings.CutPrefix(signature, signaturePrefix)
	return k == "" || ok && hmac.Equal([]byte(given), []byte(k.mac(body)))
}

func (k Key) mac(text []byte) string {
	h := hmac.New(sha256.New, []byte(k))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
