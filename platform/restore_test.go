package platform_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farmhand/platform"
)

// A function whose program cannot be found at the next start is told by name
// and reason, until a start brings it back; where the programs were is
// remembered for that.
func TestUnrestoredIsTold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	prebuilt := t.TempDir()
	if err := os.Symlink(self, filepath.Join(prebuilt, "test")); err != nil {
		t.Fatal(err)
	}
	d := function("echo")
	d.Annotations = nil
	b := start(t, func(c *platformConfig) { c.Prebuilt = prebuilt })
	b.deploy(d)
	b.stop()
	state := b.config.State
	if stack, dir := platform.LastSources(state); stack != "" || dir != prebuilt {
		t.Errorf("remembered %q, %q", stack, dir)
	}
	second := start(t, func(c *platformConfig) { c.State = state })
	list, err := platform.ListUnrestored(state)
	if err != nil || len(list) != 1 || list[0].Function != "echo" || !strings.Contains(list[0].Reason, "--prebuilt") {
		t.Errorf("%+v, %v", list, err)
	}
	second.stop()
	_, dir := platform.LastSources(state)
	third := start(t, func(c *platformConfig) { c.State, c.Prebuilt = state, dir })
	third.ready("echo")
	if list, err := platform.ListUnrestored(state); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestNothingRemembered(t *testing.T) {
	dir := t.TempDir()
	if stack, prebuilt := platform.LastSources(dir); stack != "" || prebuilt != "" {
		t.Errorf("%q %q", stack, prebuilt)
	}
	if list, err := platform.ListUnrestored(dir); err != nil || list != nil {
		t.Errorf("%v %v", list, err)
	}
	c := config(t)
	c.Prebuilt = filepath.Join(dir, "nowhere")
	if p, err := platform.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no such folder") {
		t.Errorf("%v %v", p, err)
	}
}
