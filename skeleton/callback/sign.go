package callback

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// Errors of Verify.
var (
	ErrSignature = errors.New("callback: the signature is not right")
	ErrStale     = errors.New("callback: the timestamp is too far from now")
)

// Sign returns the signature of a body sent at a timestamp.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify is for receivers: it checks a signature, and that the timestamp, which
// it covers, is no further than skew from now.
func Verify(secret, timestamp, signature string, body []byte, now time.Time, skew time.Duration) error {
	if !hmac.Equal([]byte(Sign(secret, timestamp, body)), []byte(signature)) {
		return ErrSignature
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > skew {
		return ErrStale
	}
	return nil
}
