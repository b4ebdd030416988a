package platform_test

import (
	"testing"

	"farmhand/internal/redistest"
	"farmhand/platform"
	"farmhand/skeleton/ledger/redisledger"
)

// How durable a server of the user's own is, the platform says as the ledger does.
func TestDurabilityOfGivenRedis(t *testing.T) {
	for name, c := range map[string]struct {
		conf []string
		want platform.Durability
	}{
		"no file":         {[]string{"appendonly no"}, platform.InMemory},
		"every second":    {[]string{"appendfsync everysec"}, platform.InProcess},
		"always":          {[]string{"appendfsync always"}, platform.OnDisk},
		"now and then":    {[]string{"appendfsync no"}, platform.InProcess},
		"no CONFIG":       {[]string{"appendfsync always", `rename-command CONFIG ""`}, platform.InProcess},
		"no INFO":         {[]string{`rename-command INFO ""`}, platform.InMemory},
		"no CONFIG, file": {[]string{"appendonly no", `rename-command CONFIG ""`}, platform.InMemory},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t, c.conf...)
			b := start(t, func(conf *platformConfig) { conf.Redis = "redis://" + s.Addr + "/0" })
			ledger, err := redisledger.New(redistest.Client(t, s), redisledger.Options{}).Durability(t.Context())
			if got := b.Durability(); got != c.want || err != nil || ledger != string(got) {
				t.Errorf("%q, want %q; the ledger says %q, %v", got, c.want, ledger, err)
			}
		})
	}
}
