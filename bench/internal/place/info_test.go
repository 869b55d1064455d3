package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInfoNumber(t *testing.T) {
	const text = "# CPU\r\nused_cpu_sys:2.500000\r\nused_cpu_user:0.125\r\nused_cpu_sys_children:7\r\nword:x\r\nempty:\r\nbare\r\n"
	for field, want := range map[string]float64{"used_cpu_sys": 2.5, "used_cpu_user": 0.125, "used_cpu_sys_children": 7} {
		value, err := infoNumber(text, field)
		require.NoError(t, err)
		require.Equal(t, want, value, field)
	}
	_, err := infoNumber(text, "used_cpu")
	require.ErrorContains(t, err, "there is no used_cpu")
	for _, field := range []string{"word", "empty", "bare"} {
		_, err := infoNumber(text, field)
		require.Error(t, err, field)
	}
}
