package secret_test

import (
	"os"
	"path/filepath"
	"testing"

	"farmhand/internal/secret"
)

// Callbacks are signed with a secret of their own, or with what openssl too makes
// of the token (docs/api.md), but never with the token.
func TestCallbackKey(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("secret_mount_path", dir)
	derived := "99c9f32f5ee4b51513c8dfe56843bd482c46866bac3efe2edcaa88c54dc17feb"
	for token, want := range map[string]string{"s3cret": derived, "": ""} {
		if key, err := secret.CallbackKey(token); key != want || err != nil {
			t.Errorf("of the token %q: %q %v", token, key, err)
		}
	}
	own := filepath.Join(dir, "farmhand-callback")
	for text, want := range map[string]string{"own\n": "own", " \n": ""} {
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := secret.CallbackKey("s3cret"); key != want || (err == nil) != (want != "") {
			t.Errorf("of the secret %q: %q %v", text, key, err)
		}
	}
}
